// What is trained does not depend on memory: every budget, filter, tier and overlap for
// ResNet-18, and each of them once for ResNet-50 at full size.
#include "tests/stress/resnet_identity.h"

namespace tidemark::testing {
namespace {

TEST(ResnetIdentityLong, Resnet18OnDigits) {
  ResnetIdentity resnet("resnet18", "digits", /*image_size=*/32, /*batch=*/32, /*steps=*/2);
  resnet.check_untouched();
  resnet.check_too_little();
  for (const double share : {1.0, 0.7, 0.5, 0.4, 0.0}) {
    for (const char* filter : {"base", "lru", "greedy"}) {
      for (const bool overlap : {true, false}) {
        for (const TierKind tier : {TierKind::kHost, TierKind::kDisk}) {
          resnet.check({share, filter, overlap, tier});
        }
      }
    }
  }
}

TEST(ResnetIdentityLong, Resnet50At224) {
  ResnetIdentity resnet("resnet50", "synthetic", /*image_size=*/224, /*batch=*/2, /*steps=*/2);
  resnet.check_untouched();
  resnet.check_too_little();
  resnet.check_all(
      {Memory{.share = 1}, Memory{.share = 0.7}, Memory{.share = 0.5}, Memory{.share = 0.4},
       Memory{.share = 0.5, .filter = "lru"}, Memory{.share = 0.5, .filter = "greedy"},
       Memory{.share = 0.5, .overlap = false}, Memory{.share = 0.5, .tier = TierKind::kDisk},
       Memory{}, Memory{.filter = "lru", .overlap = false},
       Memory{.filter = "greedy", .tier = TierKind::kDisk}});
}

}  // namespace
}  // namespace tidemark::testing

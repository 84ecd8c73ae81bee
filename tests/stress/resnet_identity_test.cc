// ResNet-18 on small digits: what is trained does not depend on memory. The whole matrix is in
// resnet_identity_long_test.cc.
#include "tests/stress/resnet_identity.h"

namespace tidemark::testing {
namespace {

TEST(ResnetIdentity, Resnet18OnDigits) {
  ResnetIdentity resnet("resnet18", "digits", /*image_size=*/24, /*batch=*/8, /*steps=*/2);
  resnet.check_untouched();
  resnet.check_too_little();
  resnet.check_all({Memory{.share = 1}, Memory{.share = 0.7},
                    Memory{.share = 0.5, .filter = "lru"},
                    Memory{.share = 0.5, .filter = "greedy", .tier = TierKind::kDisk},
                    Memory{.share = 0.4, .overlap = false}, Memory{},
                    Memory{.filter = "lru", .tier = TierKind::kDisk},
                    Memory{.filter = "greedy", .overlap = false}});
}

TEST(ResnetIdentity, Resnet18OnDigitsInBfloat16) {
  TIDEMARK_SKIP_WITHOUT_BFLOAT16();
  ResnetIdentity resnet("resnet18", "digits", /*image_size=*/24, /*batch=*/8, /*steps=*/2,
                        DType::kBFloat16);
  resnet.check_untouched();
  resnet.check_all({Memory{.share = 0.5, .policy = "tide"},
                    Memory{.share = 0.5, .filter = "greedy", .tier = TierKind::kDisk},
                    Memory{.policy = "tide"}});
}

// Enough steps for a plan to be made and carried out.
TEST(ResnetIdentity, Resnet18OnDigitsByPolicy) {
  ResnetIdentity resnet("resnet18", "digits", /*image_size=*/24, /*batch=*/4, /*steps=*/5);
  for (const char* policy : {"tide", "dtr"}) {
    for (const double share : {0.7, 0.5}) resnet.check({.share = share, .policy = policy});
  }
}

TEST(ResnetIdentity, Resnet18OnDigitsByPlan) {
  ResnetIdentity resnet("resnet18", "digits", /*image_size=*/24, /*batch=*/16, /*steps=*/4);
  resnet.check_planned();
}

TEST(ResnetIdentity, Resnet18OnDigitsInBfloat16ByPlan) {
  TIDEMARK_SKIP_WITHOUT_BFLOAT16();
  ResnetIdentity resnet("resnet18", "digits", /*image_size=*/24, /*batch=*/16, /*steps=*/4,
                        DType::kBFloat16);
  resnet.check_planned();
}

TEST(ResnetIdentity, Resnet18OnDigitsByPlanThatReleases) {
  ResnetIdentity resnet("resnet18", "digits", /*image_size=*/24, /*batch=*/4, /*steps=*/5);
  resnet.check_planned_releases({.share = 0.45, .policy = "delta"});
  resnet.check_planned_releases({.share = 0.6, .policy = "dtr"});
}

}  // namespace
}  // namespace tidemark::testing

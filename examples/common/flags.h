// The command line of train_resnet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/units.h"
#include "runtime/session/session.h"

namespace tidemark {

// Bytes, or a share of what the unmanaged run needs.
struct Budget {
  std::optional<Bytes> bytes;
  double share = 0;  // 0.5 for "50%"; used if there are no bytes

  // Rounded down to whole blocks.
  Bytes resolve(Bytes unmanaged_peak) const;
};
// "50%", "33.3%", or as parse_bytes. Throws UsageError.
Budget parse_budget(std::string_view text);

struct TrainFlags {
  std::string model = "resnet18";
  std::string stem = "auto";  // "cifar" for images of up to 64 x 64, else "imagenet"
  std::string data = "digits";
  int64_t batch = 64;
  int64_t steps = 0;       // 0: by epochs
  int64_t epochs = 0;      // 0: the data's default
  int64_t image_size = 0;  // 0: the data's default
  int64_t classes = 0;     // of data that does not say; 0: 1000

  std::string optimizer = "sgd";
  std::optional<double> learning_rate;  // none: the optimizer's default
  std::string schedule = "constant";    // of the learning rate; or "cosine": falling to 0
  double momentum = 0.9;
  double weight_decay = 5e-4;

  std::string device = "cpu";
  int threads = 0;
  std::optional<Budget> budget;
  std::optional<Bytes> host_limit;  // none: twice the unmanaged peak
  Bytes disk_limit{0};
  std::string disk_directory;
  std::string policy = "delta";
  DeltaOptions delta;
  bool overlap = true;
  uint64_t seed = 0;

  bool dry_run = false;
  std::string json;  // files; empty: none
  std::string trace;
};

// Nothing if the program is to end now, with `exit_code`: after --help, or after a mistake,
// which has been explained on standard error.
std::optional<TrainFlags> parse_flags(int argc, char** argv, int& exit_code);

}  // namespace tidemark

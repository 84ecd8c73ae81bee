// The command line of train_resnet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "examples/common/training_flags.h"

namespace tidemark {

struct ResNetFlags : TrainingFlags {
  ResNetFlags() {
    model = "resnet18";
    data = "digits";
    batch = 64;
    optimizer = "sgd";
    weight_decay = 5e-4;
  }

  std::string stem = "auto";  // "cifar" for images of up to 64 x 64, else "imagenet"
  int64_t image_size = 0;     // 0: the data's default
  int64_t classes = 0;        // for data that do not say; 0: 1000
};

// Returns nothing if the program should exit now, with `exit_code`: after --help, or after a
// mistake, already explained on standard error.
std::optional<ResNetFlags> parse_resnet_flags(int argc, char** argv, int& exit_code);

}  // namespace tidemark

// Trains a ResNet under a memory budget and says what that took. `train_resnet --help`
// explains.
//
//   $ train_resnet --budget 50%
//
// The run itself is examples/common/run.h; what it runs is examples/common/resnet_job.cc.
#include <optional>

#include "examples/common/program.h"
#include "examples/common/resnet_job.h"
#include "examples/common/run.h"

int main(int argc, char** argv) {
  return tidemark::run_program("train_resnet", [&] {
    int exit_code = 0;
    const std::optional<tidemark::ResNetFlags> flags =
        tidemark::parse_resnet_flags(argc, argv, exit_code);
    if (!flags) return exit_code;
    return tidemark::run_job("train_resnet", *flags, [&flags](bool with_data) {
      return tidemark::open_resnet_job(*flags, with_data);
    });
  });
}

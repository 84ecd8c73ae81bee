// Trains a ResNet under a memory budget and says what that took. `train_resnet --help`
// explains.
//
//   $ train_resnet --budget 50%
//
// The run itself is examples/common/run.h; what it runs is examples/common/resnet_job.cc.
#include "examples/common/resnet_job.h"
#include "examples/common/run.h"

int main(int argc, char** argv) {
  return tidemark::run_training("train_resnet", argc, argv, tidemark::parse_resnet_flags,
                                tidemark::open_resnet_job);
}

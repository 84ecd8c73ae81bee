// train_resnet, as scripts run it.
#pragma once

#include <string>

#include "tests/support/program_test.h"

namespace tidemark::testing {

class TrainResnet : public ProgramTest {
 protected:
  TrainResnet() : ProgramTest(TIDEMARK_TRAIN_RESNET) {}

  // Three steps of a small problem.
  ProgramResult train(const std::string& arguments) const {
    return run("--image-size 8 --batch 32 --steps 3 --threads 2 --seed 3 " + arguments);
  }

  // --NAME of a file that is not there, and --save-NAME to a folder that is not, are mistakes.
  void expect_files_are_checked(const std::string& name) const {
    const ProgramResult missing = run("--steps 1 --" + name + " /nowhere.json");
    EXPECT_EQ(missing.code, 2);
    EXPECT_THAT(missing.error, ::testing::HasSubstr("/nowhere.json"));
    EXPECT_EQ(run("--steps 1 --device sim:host --save-" + name + " /nowhere/to.json").code, 2);
  }
};

}  // namespace tidemark::testing

// Weights, checkpoints, micro-batches and clipping of train_resnet, as scripts use them.
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/file_lock.h"
#include "tests/examples/train_resnet.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

using TrainResnetFiles = testing::TrainResnet;

// Dropout draws from the session's random stream, batch norm has buffers, the last batch of an
// epoch is smaller, the rate falls, and two micro-batches make a step.
TEST_F(TrainResnetFiles, ResumedRunsHaveTheBitsOfWholeOnes) {
  const std::string flags =
      "--model mobilenet_v2 --image-size 8 --batch 400 --accumulate 2 --clip 1 --threads 1 "
      "--seed 3 --lr-schedule cosine --lr-steps 6 ";
  const Result whole = run(flags + "--steps 6");
  ASSERT_EQ(whole.code, 0) << whole.error;
  const std::vector<std::string> bits = loss_bits(whole.json);
  for (const int stop : {2, 3, 4, 5}) {  // the epoch ends with the fourth step
    SCOPED_TRACE(stop);
    const std::string checkpoint = " --checkpoint " + path("state" + std::to_string(stop));
    ASSERT_EQ(run(flags + "--steps " + std::to_string(stop) + checkpoint).code, 0);
    const Result rest = run(flags + "--steps 6 --budget 60% --resume" + checkpoint);
    ASSERT_EQ(rest.code, 0) << rest.error;
    EXPECT_EQ(rest.json.at("steps").at(0).at("step"), stop);
    EXPECT_EQ(loss_bits(rest.json), std::vector<std::string>(bits.begin() + stop, bits.end()));
    EXPECT_EQ(rest.json.at("params_checksum"), whole.json.at("params_checksum"));
    EXPECT_EQ(rest.json.at("eval"), whole.json.at("eval"));
  }
}

TEST_F(TrainResnetFiles, ARunThatGoesOnWithOtherFlagsIsToldWhich) {
  const std::string checkpoint = " --checkpoint " + path("state");
  ASSERT_EQ(train(checkpoint).code, 0);
  for (const char* flag : {"--momentum 0.5", "--model resnet34", "--seed 4", "--lr 0.1",
                           "--batch 16", "--clip 2", "--image-size 16", "--accumulate 2",
                           "--lr-schedule cosine", "--optimizer adam", "--dtype bf16"}) {
    // The last one given counts.
    const std::string last = std::string(flag).substr(0, std::string(flag).find(' '));
    std::string base;
    for (const char* part : {"--image-size 8", "--batch 32", "--seed 3"}) {
      if (!std::string(part).starts_with(last + ' ')) base += std::string(part) + ' ';
    }
    const Result result =
        run(base + "--threads 1 --steps 5 " + flag + " --resume" + checkpoint);
    EXPECT_EQ(result.code, 2) << flag;
    EXPECT_THAT(result.error, HasSubstr(last)) << flag;
    EXPECT_TRUE(result.json.is_null()) << flag << ": noticed before the dry run";
  }
  EXPECT_THAT(train(checkpoint).error, HasSubstr("--resume"));
}

// SSE4.1's default for gradients of weights is a product of copied windows, with much
// workspace: the smallest budget is one without it.
TEST_F(TrainResnetFiles, OtherAlgorithmsFitWhereDefaultsDoNotAndAreKeptByCheckpoints) {
  setenv("ONEDNN_MAX_CPU_ISA", "SSE41", 1);
  const std::string flags = "--model resnet18 --image-size 16 --batch 4 --threads 1 --steps ";
  const Result plain = run(flags + "2");
  const Result dry = run(flags + "2 --dry-run --allow-rounding");
  ASSERT_EQ(dry.code, 0) << dry.error;
  EXPECT_EQ(plain.json.at("other_algorithms"), nullptr);
  const auto least = dry.json.at("minimum_budget_bytes").get<int64_t>();
  EXPECT_LT(least, plain.json.at("minimum_budget_bytes").get<int64_t>());

  const std::string tight = " --allow-rounding --budget " + std::to_string(least);
  EXPECT_EQ(run(flags + "2 --budget " + std::to_string(least)).code, 3);
  const std::string checkpoint = " --checkpoint " + path("state");
  const Result whole = run(flags + "2" + tight);
  ASSERT_EQ(whole.code, 0) << whole.error;
  EXPECT_GT(whole.json.at("other_algorithms"), 0);
  EXPECT_LE(whole.json.at("peak_reserved_bytes"), least);
  EXPECT_NE(whole.json.at("params_checksum"), plain.json.at("params_checksum"));
  EXPECT_NEAR(whole.json.at("steps").at(1).at("loss").get<double>(),
              plain.json.at("steps").at(1).at("loss").get<double>(), 1e-3);

  ASSERT_EQ(run(flags + "1" + tight + checkpoint).code, 0);
  for (const std::string wrong : {"", " --model resnet34 --allow-rounding"}) {
    const Result refused = run(flags + "2 --resume" + checkpoint + wrong);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.error, HasSubstr(wrong.empty() ? "--allow-rounding" : "--model"));
  }
  // In ample memory the defaults would be chosen.
  const Result rest = run(flags + "2 --allow-rounding --policy none --resume" + checkpoint);
  ASSERT_EQ(rest.code, 0) << rest.error;
  EXPECT_EQ(rest.json.at("other_algorithms"), whole.json.at("other_algorithms"));
  EXPECT_EQ(rest.json.at("params_checksum"), whole.json.at("params_checksum"));
  unsetenv("ONEDNN_MAX_CPU_ISA");
}

TEST_F(TrainResnetFiles, TwoRunsOnOneCheckpointAreRefused) {
  const std::string state = path("state"), checkpoint = " --checkpoint " + state;
  {
    const FileLock other(state);
    const Result refused = train(checkpoint);
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.error, HasSubstr("in use by another run"));
    EXPECT_TRUE(refused.json.is_null());
    EXPECT_FALSE(fs::exists(state));
  }
  ASSERT_EQ(train(checkpoint).code, 0);
  const std::string before = read(state);
  const FileLock other(state);
  EXPECT_EQ(run("--image-size 8 --batch 32 --steps 5 --seed 3 --resume" + checkpoint).code, 2);
  EXPECT_EQ(read(state), before);
}

TEST_F(TrainResnetFiles, MoreStepsGoOnByTheScheduleThatIsAskedFor) {
  const std::string small = "--image-size 8 --batch 32 --threads 1 ";
  const auto checkpoint = [&](const std::string& name) {
    return " --checkpoint " + path(name);
  };
  ASSERT_EQ(run(small + "--steps 2" + checkpoint("constant")).code, 0);
  const Result more = run(small + "--steps 4 --resume" + checkpoint("constant"));
  ASSERT_EQ(more.code, 0) << more.error;
  EXPECT_EQ(more.json.at("params_checksum"),
            run(small + "--steps 4").json.at("params_checksum"));

  const std::string cosine = small + "--lr-schedule cosine ";
  ASSERT_EQ(run(cosine + "--steps 3" + checkpoint("cosine")).code, 0);
  const Result longer = run(cosine + "--steps 6 --resume" + checkpoint("cosine"));
  EXPECT_EQ(longer.code, 2);
  EXPECT_THAT(longer.error, HasSubstr("--lr-steps 3"));
  EXPECT_THAT(longer.error, HasSubstr("--lr-steps 6"));
  const Result stretched =
      run(cosine + "--steps 6 --lr-steps 6 --resume" + checkpoint("cosine"));
  EXPECT_EQ(stretched.code, 0) << stretched.error;
  // What it goes by is kept.
  EXPECT_EQ(run(cosine + "--steps 6 --resume" + checkpoint("cosine")).code, 0);
}

TEST_F(TrainResnetFiles, MicroBatchesNeedLessMemoryAndKeepBitsAndBudget) {
  // 1437 images: the last batch has 237, in micro-batches of 100, 100 and 37.
  const std::string flags = "--image-size 8 --batch 400 --steps 4 --threads 2 ";
  const Result one = run(flags + "--policy none");
  const Result four = run(flags + "--policy none --accumulate 4");
  ASSERT_EQ(four.code, 0) << four.error;
  EXPECT_LT(four.json.at("unmanaged_peak_bytes"), one.json.at("unmanaged_peak_bytes"));
  EXPECT_EQ(four.json.at("peak_reserved_bytes"), four.json.at("unmanaged_peak_bytes"));
  // The same images: but for batch norm, which sees fewer at once, the same loss.
  const auto first = [](const Result& result) {
    return result.json.at("steps").at(0).at("loss").get<double>();
  };
  EXPECT_NEAR(first(one), first(four), 0.1);
  const auto minimum = four.json.at("minimum_budget_bytes").get<int64_t>();
  for (const std::string& budget : {std::to_string(minimum), std::string("60% --plan auto")}) {
    SCOPED_TRACE(budget);
    const Result result = run(flags + "--accumulate 4 --budget " + budget);
    expect_same_training(result, four);
    EXPECT_LE(result.json.at("peak_reserved_bytes"), result.json.at("budget_bytes"));
  }
}

TEST_F(TrainResnetFiles, GradientsAreClipped) {
  const Result free = train("");
  EXPECT_EQ(train("--clip 1e9").json.at("params_checksum"), free.json.at("params_checksum"));
  EXPECT_NE(train("--clip 0.1").json.at("params_checksum"), free.json.at("params_checksum"));
}

TEST_F(TrainResnetFiles, SavedWeightsEvaluateAsTheRunDid) {
  for (const char* model :
       {"resnet18", "mobilenet_v2", "efficientnet_b0", "mnasnet1_0", "googlenet"}) {
    SCOPED_TRACE(model);
    const std::string weights = path("weights.safetensors");
    const std::string flags =
        "--image-size 16 --batch 32 --threads 2 --model " + std::string(model);
    const Result saved = run(flags + " --steps 1 --budget 50% --save " + weights);
    ASSERT_EQ(saved.code, 0) << saved.error;
    for (const char* budget : {"", " --budget 70%"}) {
      const Result loaded = run(flags + " --seed 9 --evaluate --load " + weights + budget);
      ASSERT_EQ(loaded.code, 0) << loaded.error;
      EXPECT_EQ(loaded.json.at("eval"), saved.json.at("eval"));
      EXPECT_TRUE(loaded.json.at("eval").at("loss").is_number());
      EXPECT_TRUE(loaded.json.at("steps").empty());
      EXPECT_LT(loaded.json.at("unmanaged_peak_bytes"), saved.json.at("unmanaged_peak_bytes"))
          << "no gradients, no optimizer state";
      EXPECT_THAT(loaded.out, HasSubstr("accuracy"));
    }
  }
}

TEST_F(TrainResnetFiles, WeightsOfOtherClassesKeepAllButTheLastLayer) {
  const std::string weights = path("weights.safetensors");
  const std::string flags =
      "--data synthetic --image-size 16 --batch 16 --threads 1 --steps 1 ";
  ASSERT_EQ(run(flags + "--classes 7 --save " + weights).code, 0);
  const Result tuned = run(flags + "--classes 5 --load " + weights);
  ASSERT_EQ(tuned.code, 0) << tuned.error;
  EXPECT_THAT(tuned.out, HasSubstr("new: fc.weight, fc.bias"));
  const Result same = run(flags + "--classes 7 --load " + weights);
  ASSERT_EQ(same.code, 0) << same.error;
  EXPECT_THAT(same.out, ::testing::Not(HasSubstr("new:")));
  for (const auto& [other, what] :
       {std::pair("--model resnet34", "layer1.2.conv1.weight"),
        std::pair("--model resnet50", "layer1.0.conv1.weight"),
        std::pair("--stem imagenet", "conv1.weight"), std::pair("--model vgg11", "features")}) {
    const Result result = run(flags + "--classes 7 --load " + weights + ' ' + other);
    EXPECT_EQ(result.code, 2) << other;
    EXPECT_THAT(result.error, HasSubstr(what)) << other;
    EXPECT_TRUE(result.json.is_null()) << other << ": noticed before the dry run";
  }
}

TEST_F(TrainResnetFiles, FilesOfOtherKindsAreExplained) {
  for (const std::string& file :
       {write("zip.pth", "PK\x03\x04 and so on"), write("old.pth", "\x80\x02\x8a\nl")}) {
    const Result result = train("--load " + file);
    EXPECT_EQ(result.code, 2);
    EXPECT_THAT(result.error, HasSubstr("torch.load('" + file + "'"));
    EXPECT_THAT(result.error, HasSubstr("save_file("));
  }
  const std::string state = path("state");
  ASSERT_EQ(train("--checkpoint " + state).code, 0);
  EXPECT_THAT(train("--load " + state).error, HasSubstr("--resume"));
  EXPECT_THAT(train("--load " + folder_.string()).error, HasSubstr("is a folder"));
}

}  // namespace
}  // namespace tidemark

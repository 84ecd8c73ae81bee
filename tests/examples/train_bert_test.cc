// The program as scripts use it: losses that fall, results that do not depend on memory, runs
// that go on, weights, and mistakes.
#include <gmock/gmock.h>

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/policy/registry.h"
#include "tests/support/machine.h"
#include "tests/support/program_test.h"
#include "tests/support/running_program.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class TrainBertTest : public testing::ProgramTest {
 protected:
  TrainBertTest() : ProgramTest(TIDEMARK_TRAIN_BERT) {}

  void SetUp() override {
    ProgramTest::SetUp();
    text_ = write("text", sentences(400));
    squad_ = write("squad.json", questions());
  }

  static std::string sentences(size_t count) {
    const std::vector<std::string> who{"the moon", "a tide", "the sea", "one boat"};
    const std::vector<std::string> does{"raises", "carries", "follows"};
    const std::vector<std::string> what{"the water", "a wave", "the harbour", "every stone",
                                        "the shore"};
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      text += who[i * 7 % 4] + ' ' + does[i * 5 / 2 % 3] + ' ' + what[i * 11 / 3 % 5] + ".\n";
    }
    return text;
  }

  // Contexts of different lengths, so that batches have different ones too.
  static std::string questions() {
    Json paragraphs = Json::array();
    for (size_t i = 0; i < 12; ++i) {
      const std::string before = sentences(i % 4 * 3), answer = "number " + std::to_string(i);
      Json one;
      one["context"] = before + "It is " + answer + " of them.";
      one["qas"] = {{{"id", "q" + std::to_string(i)},
                     {"question", "Which is it?"},
                     {"answers", {{{"text", answer}, {"answer_start", before.size() + 6}}}}}};
      paragraphs.push_back(one);
    }
    return Json{{"version", "1.1"}, {"data", {{{"title", "t"}, {"paragraphs", paragraphs}}}}}
        .dump();
  }

  // A few steps of a small problem, dropout on.
  std::string small(const std::string& arguments) const {
    return "--data " + text_ + " --vocab-size 200 --seq-length 16 --batch 8 --threads 2 " +
           "--seed 3 " + arguments;
  }
  Result train(const std::string& arguments) const {
    return run(small("--steps 3 " + arguments));
  }
  Result train_squad(const std::string& arguments) const {
    return run("--task squad --data " + squad_ + " --test " + squad_ +
               " --vocab-size 200 --seq-length 64 --batch 4 --threads 2 --seed 3 " + arguments);
  }

  std::string text_, squad_;
};

TEST_F(TrainBertTest, LossFallsOnTheBundledText) {
  const Result result =
      run("--steps 30 --vocab-size 1024 --seq-length 64 --batch 16 --threads 2 --seed 1");
  ASSERT_EQ(result.code, 0) << result.error;
  const Json& steps = result.json.at("steps");
  ASSERT_EQ(steps.size(), 30u);
  const auto mean = [&](size_t from) {
    double sum = 0;
    for (size_t i = from; i < from + 5; ++i) sum += steps[i].at("loss").get<double>();
    return sum / 5;
  };
  EXPECT_LT(mean(25), mean(0) - 0.5);
  EXPECT_GT(result.json.at("eval").at("accuracy"), 0.02);
  EXPECT_EQ(result.json.at("program"), "train_bert");
  EXPECT_EQ(result.json.at("model"), "bert-tiny");
}

TEST_F(TrainBertTest, SameBitsWhateverTheMemory) {
  for (const std::string attention :
       {"--attention materialised ", "--model bert-tiny ", "--dtype bf16 "}) {
    if (attention == "--dtype bf16 " && !testing::has_bfloat16()) continue;
    const Result free = train(attention + "--policy none");
    expect_same_under(
        [&](const std::string& memory) { return train(attention + memory); }, free,
        {"--budget 100%", "--budget 50%", "--budget 50% --filter greedy --no-overlap",
         "--budget 40% --host-limit 0 --disk-limit 1GiB"});
  }
}

TEST_F(TrainBertTest, SameBitsUnderEveryPolicyDownToTheMinimum) {
  const Result free = train("--policy none");
  ASSERT_EQ(free.code, 0) << free.error;
  const auto minimum = free.json.at("minimum_budget_bytes").get<int64_t>();
  for (const PolicyInfo& policy : policies()) {
    for (const std::string& budget : {std::string("60%"), std::to_string(minimum)}) {
      const std::string managed =
          "--policy " + std::string(policy.name) + " --budget " + budget;
      SCOPED_TRACE(managed);
      expect_same_training(train(managed), free);
    }
  }
}

TEST_F(TrainBertTest, OneByteUnderTheMinimumIsRefusedBeforeTraining) {
  expect_minimum_is_exact([this](const std::string& budget) { return train(budget); });
}

TEST_F(TrainBertTest, SquadBatchesOfAllLengthsKeepBitsAndBudget) {
  const Result free = train_squad("--epochs 2 --policy none");
  ASSERT_EQ(free.code, 0) << free.error;
  EXPECT_GE(free.json.at("steps").size(), 6u);
  EXPECT_EQ(free.json.at("peak_reserved_bytes"), free.json.at("unmanaged_peak_bytes"));
  EXPECT_TRUE(free.json.at("eval").at("f1").is_number());
  const auto minimum = free.json.at("minimum_budget_bytes").get<int64_t>();
  for (const std::string& budget : {std::string("50%"), std::to_string(minimum)}) {
    SCOPED_TRACE(budget);
    const Result result = train_squad("--epochs 2 --budget " + budget);
    expect_same_training(result, free);
    EXPECT_EQ(result.json.at("eval"), free.json.at("eval"));
  }
}

TEST_F(TrainBertTest, SquadIsLearnt) {
  const Result result =
      train_squad("--epochs 40 --lr 0.001 --lr-schedule constant --dropout 0");
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_GT(result.json.at("eval").at("accuracy"), 0.8);
}

TEST_F(TrainBertTest, ResumedRunsHaveTheBitsOfWholeOnes) {
  const std::string constant = "--lr-schedule constant ";
  const std::string checkpoint = " --checkpoint " + path("state");
  const Result whole = run(small(constant + "--steps 7"));
  ASSERT_EQ(whole.code, 0) << whole.error;
  ASSERT_EQ(run(small(constant + "--steps 4" + checkpoint)).code, 0);
  const Result rest = run(small(constant + "--steps 7 --budget 50% --resume" + checkpoint));
  ASSERT_EQ(rest.code, 0) << rest.error;
  ASSERT_EQ(rest.json.at("steps").size(), 3u);
  EXPECT_EQ(rest.json.at("steps")[0].at("step"), 4);
  std::vector<std::string> bits = loss_bits(whole.json);
  bits.erase(bits.begin(), bits.begin() + 4);
  EXPECT_EQ(loss_bits(rest.json), bits);
  EXPECT_EQ(rest.json.at("params_checksum"), whole.json.at("params_checksum"));
  EXPECT_EQ(rest.json.at("eval"), whole.json.at("eval"));

  const Result other = run(small(constant + "--steps 7 --dropout 0 --resume" + checkpoint));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error, HasSubstr("dropout"));
}

TEST_F(TrainBertTest, ARunThatIsThereIsNotOverwritten) {
  const std::string state = path("state"), checkpoint = " --checkpoint " + state;
  ASSERT_EQ(run(small("--steps 2" + checkpoint)).code, 0);
  const std::string before = read(state);
  const Result forgot = run(small("--steps 2" + checkpoint));
  EXPECT_EQ(forgot.code, 2);
  EXPECT_THAT(forgot.error, HasSubstr("--resume"));
  EXPECT_THAT(forgot.error, HasSubstr("remove the file"));
  EXPECT_EQ(read(state), before);
}

TEST_F(TrainBertTest, AFailureToWriteInTheEndLeavesTheResults) {
  const fs::path full = folder_ / "full";
  fs::create_symlink("/dev/full", full);
  const Result result = train("--save-costs " + full.string());
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.error, HasSubstr(full.string()));
  EXPECT_EQ(result.json.at("steps").size(), 3u);
}

TEST_F(TrainBertTest, WhatIsToBeReplacedStaysUntilThen) {
  const std::string weights = write("weights", "old"), trace = write("trace", "old");
  EXPECT_EQ(train("--budget 1KiB --save " + weights + " --trace " + trace).code, 3);
  EXPECT_EQ(read(weights), "old");
  EXPECT_EQ(read(trace), "old");
}

TEST_F(TrainBertTest, AKilledRunGoesOn) {
  const std::string flags =
      small("--steps 300 --checkpoint-every 3 --checkpoint ") + path("state");
  const Result whole = run(small("--steps 300"));
  ASSERT_EQ(whole.code, 0) << whole.error;

  testing::RunningProgram killed(TIDEMARK_TRAIN_BERT, flags);
  std::string line;
  do {
    line = killed.line();
  } while (!line.empty() && !line.starts_with("step 60/"));
  killed.send(SIGKILL);
  const int status = killed.wait();
  ASSERT_FALSE(line.empty());
  ASSERT_TRUE(WIFSIGNALED(status)) << "it ended before it was killed";

  const Result rest = run(flags + " --resume");
  ASSERT_EQ(rest.code, 0) << rest.error;
  EXPECT_GE(rest.json.at("steps").at(0).at("step"), 57);
  EXPECT_EQ(rest.json.at("params_checksum"), whole.json.at("params_checksum"));
}

TEST_F(TrainBertTest, WeightsGoFromOneTaskToAnother) {
  const std::string weights = path("weights.safetensors"), words = path("vocab.txt");
  const Result saved = train("--save " + weights + " --save-vocab " + words);
  ASSERT_EQ(saved.code, 0) << saved.error;
  const std::string from = "--weights " + weights + " --vocab " + words;
  const Result same = run("--data " + text_ + " --seq-length 16 --batch 8 --steps 1 " + from);
  EXPECT_EQ(same.code, 0) << same.error;
  EXPECT_THAT(same.out, ::testing::Not(HasSubstr("new:")));
  const Result squad =
      run("--task squad --data " + squad_ + " --seq-length 64 --steps 1 " + from);
  EXPECT_EQ(squad.code, 0) << squad.error;
  EXPECT_THAT(squad.out, HasSubstr("new: qa_outputs.weight, qa_outputs.bias"));
  const Result larger =
      run("--data " + text_ + " --batch 2 --steps 1 --vocab-size 300 " + from);
  EXPECT_EQ(larger.code, 2);
  EXPECT_THAT(larger.error, HasSubstr("300"));
}

// Without dropout a batch in parts is the same computation, but for rounding: each task cuts
// other tensors.
TEST_F(TrainBertTest, MicroBatchesAreTheSameComputation) {
  const std::string task_flags = " --dropout 0 --threads 1 ";
  const auto loss = [](const Result& result) {
    EXPECT_EQ(result.code, 0) << result.error;
    return result.json.at("steps").at(2).at("loss").get<double>();
  };
  const std::string text = "--data " + text_ + " --vocab-size 200 --seq-length 16 --batch 8";
  for (const std::string& flags :
       {text + " --steps 3", "--task squad --data " + squad_ +
                                 " --vocab-size 200 --seq-length 64 --batch 4 " +
                                 "--steps 3"}) {
    const Result whole = run(flags + task_flags);
    const Result parts = run(flags + task_flags + "--accumulate 4 --policy none");
    EXPECT_NEAR(loss(whole), loss(parts), 1e-4 * loss(whole)) << flags;
    EXPECT_EQ(parts.json.at("peak_reserved_bytes"), parts.json.at("unmanaged_peak_bytes"));
    const Result tight = run(flags + task_flags + "--accumulate 4 --budget 50%");
    expect_same_training(tight, parts);
  }
}

// A tensor that is loaded lies beside the network's own, which takes more than evaluating does.
TEST_F(TrainBertTest, LoadingCountsTowardsTheNeedOfAnEvaluation) {
  const std::string weights = path("weights.safetensors"), words = path("vocab.txt");
  const std::string shape = "--model bert-tiny --batch 1 --seq-length 8 --threads 2 ";
  const Result saved =
      run(shape + "--steps 1 --vocab-size 30522 --save " + weights + " --save-vocab " + words);
  ASSERT_EQ(saved.code, 0) << saved.error;
  const std::string evaluate = shape + "--evaluate --load " + weights + " --vocab " + words;
  const Result loaded = run(evaluate);
  ASSERT_EQ(loaded.code, 0) << loaded.error;
  const auto least = loaded.json.at("minimum_budget_bytes").get<int64_t>();
  EXPECT_EQ(run(evaluate + " --budget " + std::to_string(least)).code, 0);
  EXPECT_EQ(run(evaluate + " --budget " + std::to_string(least - 512)).code, 3);
}

TEST_F(TrainBertTest, SavedWeightsEvaluateAsTheRunDid) {
  const std::string weights = path("weights.safetensors"), words = path("vocab.txt");
  const Result saved = train("--save " + weights + " --save-vocab " + words);
  ASSERT_EQ(saved.code, 0) << saved.error;
  const Result loaded = run("--data " + text_ + " --seq-length 16 --batch 8 --threads 2 " +
                            "--evaluate --load " + weights + " --vocab " + words + " --seed 3");
  ASSERT_EQ(loaded.code, 0) << loaded.error;
  EXPECT_EQ(loaded.json.at("eval"), saved.json.at("eval"));
  EXPECT_TRUE(loaded.json.at("steps").empty());
  EXPECT_LT(loaded.json.at("unmanaged_peak_bytes"), saved.json.at("unmanaged_peak_bytes"));

  const std::string tuned = " --load " + weights + " --vocab " + words;
  const Result questions = train_squad("--epochs 1 --save " + weights + " --vocab " + words);
  ASSERT_EQ(questions.code, 0) << questions.error;
  const std::string squad = "--task squad --seq-length 64 --batch 4 --threads 2 --evaluate";
  const Result answers = run(squad + " --test " + squad_ + tuned);
  ASSERT_EQ(answers.code, 0) << answers.error;
  EXPECT_EQ(answers.json.at("eval"), questions.json.at("eval"));
  EXPECT_THAT(run(squad + tuned).error, HasSubstr("--test"));
}

TEST_F(TrainBertTest, MoreStepsGoOnByTheScheduleThatIsAskedFor) {
  const std::string checkpoint = " --checkpoint " + path("state");
  ASSERT_EQ(run(small("--steps 2" + checkpoint)).code, 0);
  const Result longer = run(small("--steps 4 --resume" + checkpoint));
  EXPECT_EQ(longer.code, 2);
  EXPECT_THAT(longer.error, HasSubstr("--lr-schedule linear over 2 steps"));
  EXPECT_THAT(longer.error, HasSubstr("--lr-steps 4"));
  EXPECT_EQ(run(small("--steps 4 --lr-steps 4 --resume" + checkpoint)).code, 0);
}

class HuggingFaceFolder : public TrainBertTest {
 protected:
  // Of the small networks in tests/golden.
  std::string make(const std::string& golden, const Json& config) const {
    const fs::path folder = folder_ / golden;
    fs::create_directory(folder);
    fs::copy_file(std::string(TIDEMARK_GOLDEN_DIR "/") + golden + ".safetensors",
                  folder / "model.safetensors", fs::copy_options::overwrite_existing);
    std::ofstream(folder / "config.json") << config.dump();
    std::ofstream words(folder / "vocab.txt");
    words << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n.\n";
    for (char c = 'a'; c <= 'z'; ++c) words << c << "\n##" << c << '\n';
    return folder.string();
  }
  static Json bert_config() {
    return {{"model_type", "bert"},     {"vocab_size", 60},
            {"hidden_size", 32},        {"num_hidden_layers", 2},
            {"num_attention_heads", 4}, {"intermediate_size", 64},
            {"layer_norm_eps", 1e-12},  {"max_position_embeddings", 24},
            {"type_vocab_size", 2},     {"hidden_act", "gelu"}};
  }
  static Json gpt2_config() {
    return {{"model_type", "gpt2"}, {"vocab_size", 60}, {"n_embd", 32},
            {"n_layer", 2},         {"n_head", 4},      {"n_positions", 24}};
  }
  Result load(const std::string& arguments) const {
    return run("--data " + text_ + " --batch 4 --threads 1 --steps 1 " + arguments);
  }
};

TEST_F(HuggingFaceFolder, GivesTheSizesOfTheNetwork) {
  const Result bert = load("--load " + make("bert_small", bert_config()));
  ASSERT_EQ(bert.code, 0) << bert.error;
  EXPECT_THAT(bert.out, HasSubstr("sequences of 24, 60 words"));
  EXPECT_THAT(bert.out, ::testing::Not(HasSubstr("new:")));
  const Result gpt2 = load("--load " + make("gpt2_small", gpt2_config()));
  ASSERT_EQ(gpt2.code, 0) << gpt2.error;
  EXPECT_THAT(gpt2.out, HasSubstr("clm"));
  EXPECT_THAT(gpt2.out, ::testing::Not(HasSubstr("new:")));
}

TEST_F(HuggingFaceFolder, MayHaveShards) {
  const std::string folder = make("bert_small", bert_config());
  const Result whole = load("--load " + folder);
  ASSERT_EQ(whole.code, 0) << whole.error;
  fs::rename(folder + "/model.safetensors", folder + "/model-00001-of-00001.safetensors");
  std::ifstream file(folder + "/model-00001-of-00001.safetensors", std::ios::binary);
  uint64_t length = 0;
  file.read(reinterpret_cast<char*>(&length), sizeof(length));
  std::string header(length, ' ');
  file.read(header.data(), static_cast<std::streamsize>(length));
  const Json tensors = Json::parse(header);
  Json map;
  for (const auto& [name, tensor] : tensors.items()) {
    if (name != "__metadata__") map[name] = "model-00001-of-00001.safetensors";
  }
  std::ofstream(folder + "/model.safetensors.index.json") << Json{{"weight_map", map}}.dump();
  const Result shards = load("--load " + folder);
  ASSERT_EQ(shards.code, 0) << shards.error;
  expect_same_training(whole, shards);
}

TEST_F(HuggingFaceFolder, OfOtherSizesThanTheModelNamesBothBeforeTheDryRun) {
  const std::string folder = make("bert_small", bert_config());
  const std::string file = folder + "/model.safetensors --vocab " + folder + "/vocab.txt";
  for (const auto& [flags, here, there] : {
           std::tuple("--model bert-base --load " + folder, "2 layers, hidden size 32, 4 heads",
                      "--model bert-base has 12 layers, hidden size 768, 12 heads"),
           std::tuple("--model gpt2 --load " + make("gpt2_small", gpt2_config()), "2 layers",
                      "--model gpt2 has 12 layers"),
           std::tuple("--model bert-base --load " + file, "2 layers, hidden size 32",
                      "bert-base has 12 layers, hidden size 768"),
           std::tuple("--model gpt2 --load " + folder, "describes a BERT", "--model gpt2"),
       }) {
    const Result result = load(flags);
    EXPECT_EQ(result.code, 2) << flags;
    EXPECT_THAT(result.error, HasSubstr(here)) << flags;
    EXPECT_THAT(result.error, HasSubstr(there)) << flags;
    EXPECT_TRUE(result.json.is_null()) << flags << ": noticed before the dry run";
    EXPECT_THAT(load(flags + " --dry-run").error, HasSubstr(here)) << flags;
  }
  // The file is not as its config.json says.
  Json config = bert_config();
  config["num_hidden_layers"] = 3;
  const Result other = load("--load " + make("bert_small", config));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error, HasSubstr("2 layers; config.json has 3 layers"));
}

TEST_F(HuggingFaceFolder, IsExplainedWhereItCannotBeRead) {
  const std::string folder = make("bert_small", bert_config());
  for (const auto& [key, value] : std::map<std::string, Json>{{"model_type", "t5"},
                                                              {"hidden_size", -1},
                                                              {"hidden_size", "many"},
                                                              {"hidden_act", "relu"},
                                                              {"num_attention_heads", 5},
                                                              {"layer_norm_eps", 2}}) {
    Json config = bert_config();
    config[key] = value;
    const Result result = load("--load " + make("bert_small", config));
    EXPECT_EQ(result.code, 2) << key;
    EXPECT_THAT(result.error, HasSubstr("'" + key + "'"));
  }
  make("bert_small", bert_config());
  fs::rename(folder + "/model.safetensors", folder + "/pytorch_model.bin");
  std::ofstream(folder + "/pytorch_model.bin") << "PK\x03\x04 and so on";
  EXPECT_THAT(load("--load " + folder).error, HasSubstr("save_file("));
  fs::remove(folder + "/pytorch_model.bin");
  EXPECT_THAT(load("--load " + folder).error, HasSubstr("neither model.safetensors nor"));
  fs::remove(folder + "/config.json");
  EXPECT_THAT(load("--load " + folder).error, HasSubstr("no config.json"));
}

// The folder gives the words; the sizes are in the checkpoint, the weights are not read again.
TEST_F(HuggingFaceFolder, ARunFromItGoesOnToTheSameBits) {
  const std::string folder = make("bert_small", bert_config());
  const std::string words = " --vocab " + folder + "/vocab.txt";
  const std::string flags = "--data " + text_ +
                            " --batch 4 --threads 1 --seed 3 --lr-schedule constant"
                            " --checkpoint " +
                            path("state");
  const Result whole = run(flags + " --steps 5 --load " + folder);
  ASSERT_EQ(whole.code, 0) << whole.error;
  fs::remove(folder_ / "state");
  ASSERT_EQ(run(flags + " --steps 3 --load " + folder).code, 0);
  fs::copy_file(folder_ / "state", folder_ / "state.3");
  fs::remove(folder + "/model.safetensors");
  for (const std::string& from : {" --load " + folder, words}) {
    fs::copy_file(folder_ / "state.3", folder_ / "state", fs::copy_options::overwrite_existing);
    const Result rest = run(flags + " --steps 5 --resume" + from);
    ASSERT_EQ(rest.code, 0) << from << "\n" << rest.error;
    EXPECT_EQ(rest.json.at("steps").size(), 2u);
    EXPECT_EQ(rest.json.at("params_checksum"), whole.json.at("params_checksum")) << from;
  }

  const Result base = run(flags + " --steps 5 --resume --model bert-base" + words);
  EXPECT_EQ(base.code, 2);
  EXPECT_THAT(base.error, HasSubstr("2 layers"));
  EXPECT_THAT(base.error, HasSubstr("--model bert-base has 12 layers"));
  Json config = bert_config();
  config["num_hidden_layers"] = 3;
  const Result other = run(flags + " --steps 5 --resume --load " + make("bert_small", config));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error, HasSubstr("2 layers"));
  EXPECT_THAT(other.error, HasSubstr("has 3 layers"));
  const Result file =
      run(flags + " --steps 5 --resume --load " + folder + "/model.safetensors" + words);
  EXPECT_EQ(file.code, 2);
  EXPECT_THAT(file.error, HasSubstr("leave out --load"));
}

TEST_F(HuggingFaceFolder, OfARunThatBeganWithoutItIsRefused) {
  const std::string state = path("state");
  ASSERT_EQ(train("--checkpoint " + state).code, 0);
  const Result other =
      train("--resume --checkpoint " + state + " --load " + make("bert_small", bert_config()));
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error, HasSubstr("--model bert-tiny"));
}

TEST_F(HuggingFaceFolder, SavedWeightsKeepItsSizes) {
  const std::string folder = make("bert_small", bert_config());
  const std::string words = " --vocab " + folder + "/vocab.txt",
                    tuned = (folder_ / "tuned.safetensors").string();
  const Result saved = load("--load " + folder + " --save " + tuned);
  ASSERT_EQ(saved.code, 0) << saved.error;
  const Result loaded =
      run("--data " + text_ + " --batch 4 --threads 1 --evaluate --load " + tuned + words);
  ASSERT_EQ(loaded.code, 0) << loaded.error;
  EXPECT_EQ(loaded.json.at("eval"), saved.json.at("eval"));
  EXPECT_THAT(load("--evaluate --load " + tuned + words).error, HasSubstr("leave out --steps"));
  const Result other = load("--model bert-base --load " + tuned + words);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error, HasSubstr("--model bert-base has 12 layers"));
  // From elsewhere: nothing in the file says how many heads there are.
  const Result bare = load("--load " + folder + "/model.safetensors" + words);
  EXPECT_EQ(bare.code, 2);
  EXPECT_THAT(bare.error, HasSubstr("bert-tiny has hidden size 128"));
  EXPECT_THAT(bare.error, HasSubstr("config.json"));
  EXPECT_THAT(bare.error, HasSubstr("--model"));
}

TEST_F(HuggingFaceFolder, WithoutWordsSaysWhichAreRead) {
  const std::string folder = make("gpt2_small", gpt2_config());
  fs::remove(folder + "/vocab.txt");
  const Result gpt2 = load("--load " + folder);
  EXPECT_EQ(gpt2.code, 2);
  EXPECT_THAT(gpt2.error, HasSubstr("byte-level BPE"));
  EXPECT_THAT(gpt2.error, HasSubstr("--vocab"));
}

TEST_F(HuggingFaceFolder, SaysWhetherCapitalsAreKept) {
  const std::string text = write("capitals", "Tides Rise And Fall.\n" + sentences(200));
  const std::string folder = make("bert_small", bert_config());
  const auto losses = [&](const std::string& flags) {
    const Result result = run("--data " + text + " --batch 4 --threads 1 --steps 1 --seed 3 " +
                              "--load " + folder + flags);
    EXPECT_EQ(result.code, 0) << result.error;
    return loss_bits(result.json);
  };
  const auto uncased = losses(""), cased = losses(" --cased");
  ASSERT_NE(uncased, cased);
  const fs::path config = fs::path(folder) / "tokenizer_config.json";
  std::ofstream(config) << R"({"do_lower_case": false})";
  EXPECT_EQ(losses(""), cased);
  EXPECT_EQ(losses(" --uncased"), uncased);
  std::ofstream(config) << R"({"model_max_length": 512})";
  EXPECT_EQ(losses(""), uncased);
  std::ofstream(config) << R"({"do_lower_case": "no"})";
  const Result bad = load("--load " + folder);
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.error, HasSubstr("'do_lower_case'"));
}

TEST_F(TrainBertTest, MistakesEndWithCodeTwo) {
  for (const char* flags :
       {"--model bert-huge", "--task nsp", "--task clm", "--model gpt2 --task mlm",
        "--attention flash", "--dropout 1", "--dropout nan", "--clip nan", "--seq-length 513",
        "--resume", "--task squad --steps 1", "--test x.json", "--budget much",
        "--lr-schedule steps", "--device sim:host --save x", "--data /nowhere/text",
        "--vocab /nowhere/vocab.txt", "--device sim:abacus", "--steps 1 --epochs 1"}) {
    EXPECT_EQ(run(flags).code, 2) << flags;
  }
  EXPECT_THAT(run("--task clm").error,
              HasSubstr("--task clm is not available for bert-tiny; use mlm or squad, or "
                        "--model gpt2, gpt2-medium"));
  EXPECT_THAT(run("--model gpt2 --task mlm").error, HasSubstr("use clm, or --model bert-tiny"));
  EXPECT_EQ(train("--load " + text_).code, 2) << "no vocabulary";
  EXPECT_EQ(train("--weights " + text_).code, 2) << "the same flag";
  const std::string words =
      " --vocab " + write("vocab", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
  EXPECT_EQ(train("--weights /nowhere/file" + words).code, 2);
  EXPECT_EQ(train("--weights " + text_ + words).code, 2);
  EXPECT_EQ(train("--resume --checkpoint /nowhere/state").code, 2);
  EXPECT_EQ(train("--checkpoint /nowhere/state").code, 2);
  for (const std::string& path : {std::string("/nowhere/file"), folder_.string()}) {
    for (const char* flag : {"--save ", "--save-vocab ", "--trace ", "--save-costs "}) {
      const Result refused = train(flag + path);
      EXPECT_EQ(refused.code, 2) << flag << path;
      EXPECT_THAT(refused.error, HasSubstr(path)) << flag;
      EXPECT_TRUE(refused.json.is_null()) << flag << path << ": noticed before training";
    }
  }
  EXPECT_EQ(run("--task squad --data " + text_).code, 2);
  EXPECT_EQ(run(small("--batch 5000")).code, 2) << "longer than the text";
}

TEST_F(TrainBertTest, SimulatorTrainsWhatNoMachineHereCould) {
  const Result result =
      run("--model gpt2-xl --device sim:a100-80gb --batch 8 --seq-length 1024 "
          "--steps 2 --budget 50%");
  expect_simulated(result, 2);
  EXPECT_GT(result.json.at("steps")[0].at("ms"), 0);
  EXPECT_LE(result.json.at("peak_reserved_bytes"), result.json.at("budget_bytes"));
}

}  // namespace
}  // namespace tidemark

// The program as people use it, on a model folder that the tests make: losses that fall,
// results that do not depend on memory, adapters, generation, and mistakes.
#include <gmock/gmock.h>

#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/checkpoint/hugging_face.h"
#include "models/checkpoint/weights.h"
#include "models/nn/parameter_init.h"
#include "models/text_models.h"
#include "runtime/session/session.h"
#include "tests/support/machine.h"
#include "tests/support/program_test.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// The character that stands for a byte in byte-level tokenizers (GPT-2's table), in UTF-8.
std::string character_of(int byte) {
  const auto printable = [](int b) {
    return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  };
  int code = byte;
  if (!printable(byte)) {
    code = 256;
    for (int b = 0; b < byte; ++b) code += printable(b) ? 0 : 1;
  }
  if (code < 128) return std::string(1, static_cast<char>(code));
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

class FinetuneTest : public testing::ProgramTest {
 protected:
  FinetuneTest() : ProgramTest(TIDEMARK_FINETUNE) {}

  void SetUp() override {
    ProgramTest::SetUp();
    model_ = path("model");
    fs::create_directories(model_);
    make_model(0.02);
    write("model/tokenizer.json", tokenizer().dump());
    write("model/tokenizer_config.json",
          Json{{"eos_token", "<|im_end|>"},
               {"chat_template",
                "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
                "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if "
                "add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"}}
              .dump());
    chats_ = write("chats.jsonl", chats(24));
  }

  // A network of two layers with random weights of this deviation.
  void make_model(double deviation) {
    const Json config{{"model_type", "llama"},
                      {"vocab_size", 272},
                      {"max_position_embeddings", 128},
                      {"num_hidden_layers", 2},
                      {"hidden_size", 32},
                      {"num_attention_heads", 4},
                      {"num_key_value_heads", 2},
                      {"intermediate_size", 48},
                      {"hidden_act", "silu"},
                      {"rms_norm_eps", 1e-5},
                      {"tie_word_embeddings", true}};
    write("model/config.json", config.dump());
    Session session({.device = "cpu", .budget = Bytes(8 << 20)});
    ParameterInit init(4);
    const auto network = parse_hugging_face_config(config.dump(), "config")
                             .make("clm", {.vocabulary = 272}, init);
    for (const NamedTensor& each : network->parameters()) {
      if (deviation == 0.02) break;
      std::vector<float> values = draw_normal(1, 0, each.tensor.elements(), deviation);
      assign_values(each.tensor, std::as_bytes(std::span(values)));
    }
    save_hugging_face_folder(model_, merged_parameters(*network), config.dump(), "");
  }

  static Json tokenizer() {
    Json vocabulary, added = Json::array();
    for (int byte = 0; byte < 256; ++byte) vocabulary[character_of(byte)] = byte;
    int id = 256;
    for (const char* special : {"<|endoftext|>", "<|im_start|>", "<|im_end|>"}) {
      added.push_back({{"id", id++},
                       {"content", special},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
    }
    const Json byte_level{{"type", "ByteLevel"},
                          {"add_prefix_space", false},
                          {"trim_offsets", true},
                          {"use_regex", true}};
    return {{"version", "1.0"},
            {"added_tokens", added},
            {"normalizer", nullptr},
            {"pre_tokenizer", byte_level},
            {"post_processor", nullptr},
            {"decoder", byte_level},
            {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
  }

  static std::string chats(int count) {
    std::string lines;
    for (int i = 0; i < count; ++i) {
      const Json messages{{{"role", "user"}, {"content", "n" + std::to_string(i % 7)}},
                          {{"role", "assistant"},
                           {"content", std::string(static_cast<size_t>(1 + i % 5), 'y')}}};
      lines += Json{{"messages", messages}}.dump() + "\n";
    }
    return lines;
  }

  Result finetune(const std::string& arguments) const {
    return run("--model " + model_ + " --threads 2 --seed 3 " + arguments);
  }
  // Three steps of a small problem, unless the arguments say otherwise.
  Result train(std::string arguments) const {
    for (const std::string& usual :
         {"--data " + chats_, std::string("--seq-length 96"), std::string("--batch 4"),
          std::string("--steps 3"), std::string("--lr 0.01"), std::string("--warmup 1")}) {
      const std::string flag = usual.substr(0, usual.find(' ') + 1);
      if (arguments.find(flag) == std::string::npos) arguments += " " + usual;
    }
    return finetune(arguments);
  }

  std::string model_, chats_;
};

TEST_F(FinetuneTest, LossFalls) {
  // Changes of low rank around random weights can do little.
  for (const auto& [kind, less] :
       {std::pair(std::string(), 1.0),
        {"--lora-rank 8 --lr 0.05 ", 0.2},
        {"--stored bf16 --adam-8bit ", 1.0},
        {"--stored bf16 --rounding stochastic --dtype bf16 ", 1.0}}) {
    if (kind.find("--dtype bf16") != std::string::npos && !testing::has_bfloat16()) continue;
    const Result result = train("--steps 40 --validate-every 20 " + kind);
    ASSERT_EQ(result.code, 0) << result.error;
    const Json& steps = result.json.at("steps");
    EXPECT_LT(steps[39].at("loss").get<double>(), steps[0].at("loss").get<double>() - less)
        << kind;
    EXPECT_LT(steps[39].at("validation_loss").get<double>(),
              steps[19].at("validation_loss").get<double>());
    EXPECT_GT(steps[0].at("tokens"), 2 * 96);
    EXPECT_LE(steps[0].at("tokens"), 4 * 96);
  }
}

TEST_F(FinetuneTest, SameBitsWhateverTheMemory) {
  for (const std::string kind :
       {"--memory 4GiB ", "--lora-rank 4 --lora-dropout 0.1 ", "--accumulate 4 --no-packing ",
        "--lora-rank 2 --lora-targets q_proj,down_proj --accumulate 2 --stored bf16 ",
        "--stored bf16 --accumulate 2 ", "--stored bf16 --optimizer sgd ",
        "--stored bf16 --rounding stochastic --dtype bf16 --adam-8bit "}) {
    if (kind.find("--dtype bf16") != std::string::npos && !testing::has_bfloat16()) continue;
    const auto with = [&](const std::string& memory) { return train(kind + memory); };
    expect_same_under(with, with("--policy none"),
                      {"--budget 100%", "--budget 60%", "--budget 60% --policy delta",
                       "--budget 60% --host-limit 0 --disk-limit 1GiB",
                       "--budget 60% --host-limit 1GiB --disk-limit 0"});
  }
}

// A run loads weights before it trains, by operators that no step has; the simulator does not.
TEST_F(FinetuneTest, FollowsAScheduleOfTheSimulator) {
  const std::string usual = "--seq-length 48 --batch 1 --budget 50% ";
  const std::string file = path("schedule.json");
  const Result made = train(usual + "--steps 8 --device sim:host --save-schedule " + file);
  ASSERT_EQ(made.code, 0) << made.error;
  const Result run = train(usual + "--steps 5 --schedule " + file);
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_THAT(run.error, HasSubstr("steps now follow the given plan"));
  EXPECT_GT(run.json.at("plan").at("steps"), 0);
}

// As many labels count in each micro-batch as the data have there, and each counts once.
TEST_F(FinetuneTest, AccumulationWeighsByTokens) {
  const Result whole = train("--no-packing"), parts = train("--no-packing --accumulate 4");
  ASSERT_EQ(parts.code, 0) << parts.error;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(parts.json.at("steps")[i].at("loss").get<double>(),
                whole.json.at("steps")[i].at("loss").get<double>(), 2e-4);
  }
}

TEST_F(FinetuneTest, PackedSequencesDoNotSeeEachOther) {
  // One step over the same examples, all of them in one batch.
  const std::string all = "--steps 1 --hold-out 0 --clip 0";
  const Result packed = train(all + " --batch 12");
  const Result alone = train(all + " --batch 24 --no-packing");
  ASSERT_EQ(packed.code, 0) << packed.error;
  ASSERT_EQ(alone.code, 0) << alone.error;
  EXPECT_NEAR(packed.json.at("steps")[0].at("loss").get<double>(),
              alone.json.at("steps")[0].at("loss").get<double>(), 1e-5);
}

TEST_F(FinetuneTest, ResumesWithTheSameBits) {
  int number = 0;
  for (const std::string kind :
       {"--lora-rank 4 --lora-dropout 0.1 ", "--accumulate 2 ", "--stored bf16 --adam-8bit ",
        "--stored bf16 --rounding stochastic ", "--stored bf16 --optimizer sgd "}) {
    const std::string checkpoint = " --checkpoint " + path("state" + std::to_string(number++));
    const Result whole = train(kind + "--steps 4 --lr-steps 4");
    ASSERT_EQ(train(kind + "--steps 2 --lr-steps 4" + checkpoint).code, 0);
    const Result rest = train(kind + "--steps 4 --lr-steps 4 --resume" + checkpoint);
    ASSERT_EQ(rest.code, 0) << rest.error;
    EXPECT_EQ(rest.json.at("params_checksum"), whole.json.at("params_checksum"));
  }
}

TEST_F(FinetuneTest, AnAdapterIsSavedAndUsed) {
  const std::string adapter = path("adapter"), merged = path("merged");
  const Result trained =
      train("--steps 40 --lora-rank 4 --output " + adapter + " --generate n3 --max-tokens 12");
  ASSERT_EQ(trained.code, 0) << trained.error;
  EXPECT_THAT(trained.out, HasSubstr("> n3\n"));
  const auto answer = [&](const Result& result) {
    return result.out.substr(result.out.find("> n3\n"), 12);
  };
  const Result used =
      finetune("--seq-length 96 --adapter " + adapter + " --generate n3 " + "--max-tokens 12");
  ASSERT_EQ(used.code, 0) << used.error;
  EXPECT_EQ(answer(used), answer(trained));
  EXPECT_THAT(answer(used), HasSubstr("y"));
  // Merged, the folder is a model of its own.
  ASSERT_EQ(train("--steps 40 --lora-rank 4 --merge --budget 60% --output " + merged).code, 0);
  const Result plain =
      run("--model " + merged + " --seq-length 96 --generate n3 --max-tokens 12");
  ASSERT_EQ(plain.code, 0) << plain.error;
  EXPECT_EQ(answer(plain), answer(trained));
  // Without training.
  const Result joined =
      finetune("--adapter " + adapter + " --merge --output " + path("joined"));
  ASSERT_EQ(joined.code, 0) << joined.error;
  EXPECT_EQ(joined.json.at("steps").size(), 0U);
  EXPECT_EQ(read(path("joined/model.safetensors")), read(merged + "/model.safetensors"));
  // A folder does not get both.
  EXPECT_THAT(train("--output " + adapter).error, HasSubstr("holds adapter_config.json"));
  EXPECT_THAT(train("--steps 1 --lora-rank 1 --output " + adapter).error,
              HasSubstr("holds an adapter, which will be replaced"));
  EXPECT_THAT(train("--lora-rank 1 --output " + merged).error,
              HasSubstr("holds model.safetensors"));
}

// Of some layers, with a name that others share.
TEST_F(FinetuneTest, AnAdapterOfOneLayerIsReadBack) {
  const std::string adapter = path("adapter");
  ASSERT_EQ(
      train("--lora-rank 2 --lora-targets model.layers.0.self_attn.q_proj --output " + adapter)
          .code,
      0);
  const Result used = finetune("--seq-length 96 --generate n3 --adapter " + adapter);
  EXPECT_EQ(used.code, 0) << used.error;
}

// transformers converts what it loads to the type that config.json names.
TEST_F(FinetuneTest, TheConfigNamesTheTypeThatIsSaved) {
  Json config = Json::parse(read(path("model/config.json")));
  config["dtype"] = "bfloat16";
  write("model/config.json", config.dump());
  ASSERT_EQ(train("--output " + path("tuned")).code, 0);
  EXPECT_EQ(Json::parse(read(path("tuned/config.json"))).at("dtype"), "float32");
}

TEST_F(FinetuneTest, GenerationIsTheSameWithinABudget) {
  make_model(0.3);  // so that answers are not one token again and again
  const std::string ask = "--seq-length 96 --generate 'What is it?' --max-tokens 24 ";
  for (const std::string how : {"", "--temperature 0.8 --top-p 0.9 "}) {
    const Result free = finetune(ask + how);
    ASSERT_EQ(free.code, 0) << free.error;
    const auto minimum = free.json.at("minimum_budget_bytes").get<int64_t>();
    const Result least = finetune(ask + how + "--budget " + std::to_string(minimum));
    ASSERT_EQ(least.code, 0) << least.error;
    const auto answer = [](const Result& result) {
      const size_t begin = result.out.find("> What");
      return result.out.substr(begin, result.out.find("\n\n", begin) - begin);
    };
    EXPECT_EQ(answer(least), answer(free));
    EXPECT_LE(least.json.at("peak_reserved_bytes"), minimum);
  }
}

TEST_F(FinetuneTest, ValidatesOnAFileAndWritesForTensorBoard) {
  const std::string other = write("other.jsonl", chats(5));
  const Result result =
      train("--validation " + other + " --validate-every 2 --tensorboard " + path("board"));
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_FALSE(result.json.at("steps")[0].contains("validation_loss"));
  EXPECT_TRUE(result.json.at("steps")[1].contains("validation_loss"));
  ASSERT_FALSE(fs::is_empty(path("board")));
  const std::string events = read(fs::directory_iterator(path("board"))->path());
  for (const char* tag : {"train/loss", "validation/loss", "speed/tokens_per_s"}) {
    EXPECT_THAT(events, HasSubstr(tag));
  }
  // A validation at the end alone.
  ASSERT_EQ(train("--validation " + other + " --tensorboard " + path("last")).code, 0);
  EXPECT_THAT(read(fs::directory_iterator(path("last"))->path()), HasSubstr("validation/loss"));
}

TEST_F(FinetuneTest, BudgetAutoIsMemoryAuto) {
  const Result result = train("--budget auto");
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("--memory auto: "));
  EXPECT_THAT(train("--memory 1GiB --budget auto").out, Not(HasSubstr("--memory auto: ")));
}

TEST_F(FinetuneTest, StopsEarly) {
  const Result result = train("--steps 50 --lr 0 --validate-every 1 --patience 2");
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_EQ(result.json.at("steps").size(), 3U);  // the first is the best; two are not better
  // What is counted goes on in a run that goes on.
  const std::string flags =
      "--lr 0 --validate-every 1 --patience 2 --checkpoint " + path("state") + " --steps ";
  ASSERT_EQ(train(flags + "2").json.at("steps").size(), 2U);
  EXPECT_EQ(train(flags + "50 --lr-steps 50 --resume").json.at("steps").size(), 1U);
  EXPECT_EQ(train(flags + "50 --lr-steps 50 --resume").json.at("steps").size(), 0U);
}

TEST_F(FinetuneTest, OneByteUnderTheMinimumIsRefusedBeforeTraining) {
  expect_minimum_is_exact(
      [&](const std::string& more) { return train("--lora-rank 4 " + more); });
}

TEST_F(FinetuneTest, ADryRunComparesWays) {
  const Result result = run("--model smollm2-135m --dry-run --seq-length 64 --batch 1");
  ASSERT_EQ(result.code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("all weights"));
  EXPECT_THAT(result.out, HasSubstr("LoRA of rank 8"));
  // The name has no weights to train.
  EXPECT_THAT(result.out, HasSubstr("finetune --model DIR --lora-rank 8\nDIR: "));
}

TEST_F(FinetuneTest, MistakesAreExplained) {
  const auto expect = [&](const Result& result, int code, const std::string& message) {
    EXPECT_EQ(result.code, code) << result.out;
    EXPECT_THAT(result.error, HasSubstr(message));
  };
  expect(train("--lora-rank 4 --lora-targets k_proj,x_proj"), 2,
         "'x_proj'; there are down_proj");
  expect(run("--model nowhere --steps 1"), 2, "no file, folder or network nowhere");
  expect(run("--model smollm2-135m --steps 1"), 2, "names a network without weights");
  expect(train("--rounding stochastic"), 2, "--rounding stochastic needs --stored bf16");
  expect(train("--stored bf16 --lora-rank 4 --rounding stochastic"), 2, "and no LoRA");
  expect(train("--stored bf16 --rounding stochastic --optimizer sgd"), 2,
         "--rounding stochastic needs adam or adamw");
  expect(train("--adam-8bit --optimizer sgd"), 2, "--adam-8bit needs adam or adamw");
  expect(train("--merge --output x"), 2, "--merge needs");
  expect(train("--seq-length 129"), 2, "at most 128 tokens");
  expect(train("--data " + write("bad.jsonl", chats(2) + "{\"messages\": 3}\n")), 2, "line 3");
  expect(train("--budget 1KiB"), 3, "at least");
  expect(train("--output " + model_), 2, "replace --model's own files");
  expect(train("--output " + chats_ + "/below"), 2, "chats.jsonl is not a folder");
  expect(train("--output " + chats_), 2, "chats.jsonl is not a folder");
  expect(train("--seq-length 16 --generate '" + std::string(40, 'a') + "'"), 2, "a prompt has");
}

TEST_F(FinetuneTest, WeightsThatAreNotNumbersAreRefused) {
  make_model(std::nan(""));
  const Result result = train("");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.error, HasSubstr("NaN, element 0"));
  EXPECT_FALSE(fs::exists(path("out-folder")));
}

TEST_F(FinetuneTest, DivergedTrainingIsNotSaved) {
  const Result result = train("--steps 6 --lr 1e30 --clip 0 --output " + path("tuned"));
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.error, HasSubstr("no longer a number"));
  EXPECT_FALSE(fs::exists(path("tuned")));
}

TEST_F(FinetuneTest, AnAdaptersRunGoesOnWithItsOwnWeightsOnly) {
  const std::string flags = "--lora-rank 2 --lr-steps 4 --checkpoint " + path("state");
  ASSERT_EQ(train("--steps 2 " + flags).code, 0);
  make_model(0.3);
  const Result other = train("--steps 4 --resume " + flags);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error, HasSubstr("--weights"));
}

TEST_F(FinetuneTest, MergingFitsInTheSmallestBudget) {
  const std::string flags =
      "--lora-rank 1 --batch 1 --seq-length 32 --merge --output " + path("tuned");
  const Result free = train(flags);
  ASSERT_EQ(free.code, 0) << free.error;
  const auto minimum = free.json.at("minimum_budget_bytes").get<int64_t>();
  const Result least = train(flags + " --budget " + std::to_string(minimum));
  EXPECT_EQ(least.code, 0) << least.error;
  EXPECT_EQ(train(flags + " --policy none").code, 0);
}

TEST_F(FinetuneTest, ATruncatedFileIsRefused) {
  fs::resize_file(model_ + "/model.safetensors", 1000);
  const Result result = train("--output " + path("tuned"));
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.error, HasSubstr("model.safetensors"));
  EXPECT_FALSE(fs::exists(path("tuned")));
}

TEST_F(FinetuneTest, ATokenizerOfAnotherModelIsRefused) {
  Json other = tokenizer();
  other["added_tokens"].push_back(other["added_tokens"][0]);
  other["added_tokens"].back()["id"] = 300;
  other["added_tokens"].back()["content"] = "<|more|>";
  write("model/tokenizer.json", other.dump());
  const Result result = train("");
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.error,
              HasSubstr("the tokenizer has 301 tokens, but the network only 272"));
}

}  // namespace
}  // namespace tidemark

#include "models/checkpoint/training_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>

#include "models/checksum.h"
#include "models/data/random.h"
#include "models/nn/layers.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/loss/loss.h"
#include "ops/random/random.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"
#include "tests/models/data/files.h"

namespace tidemark {
namespace {

using testing::data_error;
using ::testing::HasSubstr;
using testing::TempFolder;

// A buffer (running statistics), random numbers (dropout) and parameters.
struct Net : Module {
  explicit Net(ParameterInit& init) : norm(6, init), fc(6, 3, init) {
    register_child("norm", norm);
    register_child("fc", fc);
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = reshape(norm.forward(reshape(x, {8, 1, 1, 6})), {8, 6});
    return fc.forward(dropout(y, 0.3));
  }
  BatchNorm2d norm;
  Linear fc;
};

enum class Rule { kAdam, kMomentum };

// One process's share of a run: everything is made anew, as after a restart.
class TrainingRun {
 public:
  explicit TrainingRun(Rule rule, uint64_t seed = 3,
                       std::shared_ptr<const AlgorithmTable> algorithms = nullptr)
      : session_({.device = "cpu",
                  .threads = 1,
                  .algorithms = std::move(algorithms),
                  .budget = Bytes(1 << 20),
                  .seed = seed}),
        init_(1),
        net_(init_) {
    optimizer_ = rule == Rule::kAdam
                     ? make_adam(net_.parameters(), {.lr = 0.05})
                     : make_sgd(net_.parameters(), {.lr = 0.05, .momentum = 0.9});
  }

  void train(int64_t steps) {
    for (int64_t i = 0; i < steps; ++i) {
      optimizer_->set_learning_rate(0.05 / static_cast<double>(state_.step + 1));
      session_.step([&] {
        backward(cross_entropy(net_.forward(input()), labels()));
        optimizer_->step();
      });
      ++state_.step;
      if (++state_.data.index == 5) {
        state_.data.index = 0;
        ++state_.data.epoch;
      }
    }
  }
  void save(const std::string& path) {
    state_.data.order_seed = 77;
    state_.settings = {{"model", "net"}};
    save_training_state(path, net_, *optimizer_, state_);
  }
  void load(const std::string& path) { state_ = load_training_state(path, net_, *optimizer_); }

  std::string checksum() {
    const std::vector<NamedTensor> parameters = net_.parameters(), buffers = net_.buffers();
    return *tensors_checksum({parameters, buffers, optimizer_->state()}) + " " +
           std::to_string(session_.reserve_random(0)) + " " +
           std::to_string(optimizer_->learning_rate());
  }
  const TrainingState& state() const { return state_; }

 private:
  // By the position in the data alone.
  Tensor input() {
    CounterRandom random(1, RandomStream::kNoise,
                         static_cast<uint64_t>(state_.data.epoch * 100 + state_.data.index));
    const auto values = std::make_shared<std::vector<float>>(48);
    for (float& value : *values) value = random.uniform(-1, 1);
    return session_.upload(TensorMeta::contiguous(DType::kFloat32, {8, 6}), Category::kData,
                           values->data(), values);
  }
  Tensor labels() {
    const auto values = std::make_shared<std::vector<int64_t>>();
    for (int64_t i = 0; i < 8; ++i) values->push_back((i + state_.data.index) % 3);
    return session_.upload(TensorMeta::contiguous(DType::kInt64, {8}), Category::kData,
                           values->data(), values);
  }

  Session session_;
  ParameterInit init_;
  Net net_;
  std::unique_ptr<Optimizer> optimizer_;
  TrainingState state_;
};

class TrainingStateTest : public ::testing::Test {
 protected:
  std::string path() const { return folder_.path() + "/state.safetensors"; }
  void save_after(int64_t steps, Rule rule = Rule::kAdam) {
    TrainingRun run(rule);
    run.train(steps);
    run.save(path());
  }
  // The state with another value for a field, whole otherwise: the checksum is right.
  void rewrite(const std::string& key, const std::string& value) {
    SafetensorsFile file(path());
    WeightMetadata metadata = file.metadata();
    ASSERT_TRUE(metadata.contains(key)) << key;
    metadata[key] = value;
    metadata["checksum"] = "0000000000000000";
    std::vector<SafetensorsSpec> specs;
    for (const WeightEntry& entry : file.entries()) {
      specs.push_back({entry.name, *entry.dtype, entry.shape});
    }
    SafetensorsWriter writer(path(), specs, metadata);
    Checksum checksum;
    checksum.add(std::as_bytes(std::span(writer.header())));
    for (const WeightEntry& entry : file.entries()) {
      std::vector<std::byte> bytes(static_cast<size_t>(entry.bytes().count()));
      file.read(entry, bytes);
      checksum.add(bytes);
      writer.write(bytes);
    }
    const auto at = static_cast<int64_t>(writer.header().find("0000000000000000"));
    const std::string hex = checksum.hex();
    writer.file().overwrite(at, std::as_bytes(std::span(hex)));
    writer.commit();
  }
  TempFolder folder_;
};

class ResumeTest : public TrainingStateTest, public ::testing::WithParamInterface<Rule> {};

TEST_P(ResumeTest, AStoppedRunEndsWithTheSameBits) {
  std::string whole;
  {
    TrainingRun run(GetParam());
    run.train(12);
    whole = run.checksum();
  }
  for (const int64_t stop : {0, 1, 5, 7, 11}) {
    std::string before;
    {
      TrainingRun run(GetParam());
      run.train(stop);
      run.save(path());
      before = run.checksum();
    }
    TrainingRun run(GetParam());
    run.train(2);  // whatever it was before
    run.load(path());
    EXPECT_EQ(run.checksum(), before) << stop;
    EXPECT_EQ(run.state().step, stop);
    EXPECT_EQ(run.state().data, (DataPosition{stop / 5, stop % 5, 77}));
    run.train(12 - stop);
    EXPECT_EQ(run.checksum(), whole) << stop;
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, ResumeTest, ::testing::Values(Rule::kAdam, Rule::kMomentum),
                         [](const auto& suite) {
                           return suite.param == Rule::kAdam ? "Adam" : "Momentum";
                         });

TEST_F(TrainingStateTest, IsASafetensorsFile) {
  save_after(3);
  const SafetensorsFile file(path());
  EXPECT_NE(file.find("parameter.fc.weight"), nullptr);
  EXPECT_NE(file.find("buffer.norm.running_mean"), nullptr);
  EXPECT_NE(file.find("optimizer.fc.bias.variance"), nullptr);
  EXPECT_EQ(file.metadata().at("step"), "3");
  const TrainingState state = read_training_state(path());
  EXPECT_EQ(read_training_settings(path()), state.settings);
  EXPECT_EQ(state.step, 3);
  EXPECT_EQ(state.settings, (WeightMetadata{{"model", "net"}}));
}

TEST_F(TrainingStateTest, EveryFlippedByteIsNoticed) {
  save_after(1);
  const testing::ByteVector good = testing::read_bytes(path());
  for (size_t at = 0; at < good.size(); at += at < 2000 ? 1 : 7) {
    testing::ByteVector bad = good;
    bad[at] ^= 0x04;
    folder_.write("state.safetensors", bad);
    const int64_t offset = data_error([&] { read_training_state(path()); }, path());
    EXPECT_LE(offset, static_cast<int64_t>(good.size()) + 8) << at;
  }
  for (size_t n = 0; n < good.size(); n += 101) {
    folder_.write("state.safetensors", testing::first(good, n));
    data_error([&] { read_training_state(path()); }, path());
  }
}

TEST_F(TrainingStateTest, DamageLeavesTheRunAsItWas) {
  save_after(4);
  testing::ByteVector bytes = testing::read_bytes(path());
  bytes.back() ^= 1;
  folder_.write("state.safetensors", bytes);
  TrainingRun run(Rule::kAdam);
  run.train(1);
  const std::string before = run.checksum();
  data_error([&] { run.load(path()); }, path());
  EXPECT_EQ(run.checksum(), before);
}

TEST_F(TrainingStateTest, AnotherOptimizerSeedOrFileIsRefused) {
  save_after(2);
  {
    TrainingRun run(Rule::kMomentum);
    const std::string before = run.checksum();
    data_error([&] { run.load(path()); }, path());
    EXPECT_EQ(run.checksum(), before);
  }
  {
    TrainingRun run(Rule::kAdam, /*seed=*/4);
    const std::string before = run.checksum();
    EXPECT_THROW(run.load(path()), UsageError);
    EXPECT_EQ(run.checksum(), before);
  }
  SafetensorsWriter(path(), {}, {{"format", "pt"}}).commit();
  data_error([&] { read_training_state(path()); }, path());
  SafetensorsWriter(path(), {}, {}).commit();
  data_error([&] { read_training_state(path()); }, path());
}

TEST_F(TrainingStateTest, TheAlgorithmsOfCallsAreThoseOfTheSessionThatGoesOn) {
  const auto table = std::make_shared<const AlgorithmTable>(AlgorithmTable{{7, "jit:avx2"}});
  {
    TrainingRun run(Rule::kAdam, 3, table);
    run.train(2);
    run.save(path());
  }
  const TrainingState state = read_training_state(path());
  ASSERT_TRUE(state.algorithms);
  EXPECT_EQ(*state.algorithms, *table);
  const auto other = std::make_shared<const AlgorithmTable>(AlgorithmTable{{7, "ref:any"}});
  for (const auto& wrong : {std::shared_ptr<const AlgorithmTable>(), other}) {
    TrainingRun run(Rule::kAdam, 3, wrong);
    const std::string before = run.checksum();
    EXPECT_THROW(run.load(path()), UsageError);
    EXPECT_EQ(run.checksum(), before);
  }
  TrainingRun run(Rule::kAdam, 3, state.algorithms);
  run.load(path());
  EXPECT_EQ(run.state().step, 2);
  for (const std::string wrong : {R"({"7":"ref:any"})", "jit:avx2"}) {
    rewrite("algorithms", wrong);
    try {
      run.load(path());
      ADD_FAILURE() << wrong;
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("'algorithms' in __metadata__"));
    }
  }

  save_after(1);
  EXPECT_FALSE(read_training_state(path()).algorithms);
  TrainingRun with_table(Rule::kAdam, 3, table);
  EXPECT_THROW(with_table.load(path()), UsageError);
}

// What no run can have saved, in a file whose checksum is right.
TEST_F(TrainingStateTest, ValuesThatMeanNothingAreRefusedByName) {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"step", "-1"},
      {"step", "9223372036854775807"},
      {"data_epoch", "-2"},
      {"data_index", "-1"},
      {"data_index", "9223372036854775807"},
      {"random_offset", "18446744073709551615"},
      {"learning_rate", "nan"},
      {"learning_rate", "inf"},
      {"learning_rate", "-0.1"},
      {"updates", "2,2,-1,2"},
      {"updates", "2,2,9223372036854775807,2"},
  };
  save_after(2);
  rewrite("step", "2");
  {
    TrainingRun run(Rule::kAdam);
    run.load(path());  // the file is as it was
  }
  for (const auto& [key, value] : bad) {
    save_after(2);
    rewrite(key, value);
    TrainingRun run(Rule::kAdam);
    run.train(1);
    const std::string before = run.checksum();
    try {
      run.load(path());
      ADD_FAILURE() << key << " = " << value << " was taken";
    } catch (const DataError& error) {
      EXPECT_THAT(error.what(), HasSubstr("'" + key + "' in __metadata__")) << value;
    }
    EXPECT_EQ(run.checksum(), before) << key;
    if (key == "step" || key.starts_with("data")) {
      data_error([&] { read_training_state(path()); }, path());
    }
  }
}

// The system ends a process that saves at a chosen byte, as a crash would; the run goes on from
// the state before. Sessions are made in child processes alone: a fork has but one thread.
int in_child(const std::function<bool()>& body, std::optional<rlim_t> limit = {}) {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    if (limit) {
      const rlimit size{*limit, *limit};
      setrlimit(RLIMIT_FSIZE, &size);
    }
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(TrainingStateTest, ACrashWhileSavingLeavesTheOldState) {
  const auto step_is = [&](int64_t step) {
    return in_child([&] {
      TrainingRun run(Rule::kAdam);
      run.load(path());
      return run.state().step == step;
    });
  };
  ASSERT_EQ(in_child([&] { return save_after(2), true; }), 0);
  const auto size = static_cast<rlim_t>(std::filesystem::file_size(path()));
  for (const rlim_t limit : {rlim_t{0}, rlim_t{9}, rlim_t{1000}, size / 2, size - 1}) {
    const int status = in_child([&] { return save_after(3), true; }, limit);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) << limit;
    EXPECT_EQ(step_is(2), 0) << limit;
  }
  EXPECT_EQ(in_child([&] { return save_after(3), true; }), 0);
  EXPECT_EQ(step_is(3), 0);
}

}  // namespace
}  // namespace tidemark

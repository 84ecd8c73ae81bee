// What tensors and operators are called in events, messages, traces and recorded steps.
#include <gmock/gmock.h>
#include <unistd.h>
#include <optional>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>

#include "models/nn/conv_blocks.h"
#include "models/optim/optimizer.h"
#include "models/resnet.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"
#include "runtime/core/errors.h"
#include "runtime/schedule/step_trace.h"
#include "runtime/session/call_listener.h"
#include "runtime/session/session.h"
#include "runtime/telemetry/trace_writer.h"

namespace tidemark {
namespace {

using namespace tidemark::literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSubsetOf;
using ::testing::Not;

ResNetOptions small_resnet() {
  ResNetOptions options = resnet_options("resnet18");
  options.cifar_stem = true;
  options.classes = 10;
  return options;
}

// ResNet-18 on small images, with SGD.
class Training {
 public:
  explicit Training(int64_t batch)
      : model_(small_resnet(), init_),
        sgd_(make_sgd(model_.parameters(), {.lr = 0.1, .momentum = 0.9})),
        images_(input({batch, 8, 8, 3}, DType::kFloat32, "images")),
        labels_(input({batch}, DType::kInt64, "labels")) {}

  void step() const {
    backward(cross_entropy(model_.forward(images_), labels_));
    sgd_->step();
  }
  const ResNet& model() const { return model_; }
  const Optimizer& sgd() const { return *sgd_; }

 private:
  static Tensor input(const Shape& shape, DType dtype, const char* name) {
    return Session::current().upload(TensorMeta::contiguous(dtype, shape), Category::kData,
                                     nullptr, nullptr, name);
  }
  ParameterInit init_{1};
  ResNet model_;
  std::unique_ptr<Optimizer> sgd_;
  Tensor images_, labels_;
};

std::set<std::string> names_of(const EventLog& log, EventKind kind) {
  std::set<std::string> names;
  log.for_each([&](const EventRecord& event) {
    if (event.kind == kind) names.insert(event.name);
  });
  return names;
}

TEST(NamesTest, ParametersBuffersAndOptimizerStateAreCalledByTheirPaths) {
  Session session({.device = "sim:host"});
  const Training training(2);
  size_t count = 0;
  for (const auto& list :
       {training.model().parameters(), training.model().buffers(), training.sgd().state()}) {
    for (const NamedTensor& one : list) EXPECT_EQ(one.tensor.storage()->name, one.name);
    count += list.size();
  }
  EXPECT_EQ(count, 62U + 40U + 62U);
}

TEST(NamesTest, OperatorsAreCalledByTheModuleAndTheirGradientsAfterThem) {
  Session session({.device = "sim:host"});
  const Training training(2);
  session.step([&] { training.step(); });
  const std::set<std::string> names = names_of(session.events(), EventKind::kOperator);
  for (const char* name :
       {"conv1: conv2d", "layer3.1.conv1: conv2d", "layer3.1.conv1: conv2d_grad_weight",
        "layer3.1.conv1: conv2d_grad_input", "layer3.0.downsample.0: conv2d", "fc: matmul",
        "layer3.1.bn1: update_running_stats_", "layer3.1.conv1.weight: sgd_momentum_step_",
        "cross_entropy"}) {
    EXPECT_THAT(names, Contains(name));
  }
  // Where the gradients of a block's input meet.
  EXPECT_THAT(names, Contains("layer3.0.bn2: accumulate"));
  session.events().for_each([](const EventRecord& event) {
    const std::string name = event.name, op = event.op;
    if (event.kind == EventKind::kOperator) {
      EXPECT_TRUE(name == op || name.ends_with(": " + op)) << name << ", " << op;
    }
  });
}

TEST(NamesTest, OutputsBearTheirNumber) {
  Session session({.device = "sim:host"});
  const Training training(2);
  std::set<std::string> names;
  std::optional<CallListener> listener(std::in_place, session, [&](const Recipe& call) {
    for (const Recipe::Output& output : call.outputs) names.insert(output.storage->name);
  });
  session.step([&] { training.step(); });
  listener.reset();
  EXPECT_THAT(names, Contains("layer1.0.conv1: conv2d"));
  EXPECT_THAT(names, Contains("layer1.0.bn1: batch_norm"));
  EXPECT_THAT(names, Contains("layer1.0.bn1: batch_moments, output 1"));
}

TEST(NamesTest, GradientsAreCalledAfterTheirParameters) {
  Session session({.device = "sim:host"});
  const Training training(2);
  session.step([&] { training.step(); });  // drops its gradients
  Tensor w = upload_constant({2}, 1, Category::kParameter, "w");
  require_grad(w);
  name_tensor(w, "head.w");
  for (int micro_batch = 0; micro_batch < 2; ++micro_batch) {
    session.step([&] { backward(sum(mul(w, w))); });
    EXPECT_STREQ(grad_of(w).storage()->name, "head.w.grad");
  }
  const Tensor other = scale(grad_of(w), 0.5);
  set_grad(w, other);
  EXPECT_STREQ(other.storage()->name, "head.w.grad");
  EXPECT_THAT(names_of(session.events(), EventKind::kOperator), Contains("head.w: accumulate"));
}

struct Convolutions : Module {
  explicit Convolutions(ParameterInit& init) {
    layers.add<Conv2d>(Conv2dOptions{.in = 8, .out = 64, .kernel = 3, .padding = 1}, init);
    layers.add<Conv2d>(Conv2dOptions{.in = 64, .out = 64, .kernel = 3, .padding = 1}, init);
    register_child("layers", layers);
  }
  Sequential layers;
};

// Under every budget that does not suffice: together the messages name tensors of all kinds.
TEST(NamesTest, OutOfMemoryNamesTheLargestTensorsAndTheOperatorAtFault) {
  std::string text;
  const auto run = [](Session& session) {
    ParameterInit init(1);
    Convolutions net(init);
    const auto sgd = make_sgd(net.parameters(), {.lr = 0.1, .momentum = 0.9});
    const Tensor x = upload_constant({2, 16, 16, 8}, 1, Category::kData, "images");
    session.step([&] {
      // Of two micro-batches, so that the first one's gradients are there in the second.
      for (int i = 0; i < 2; ++i) backward(sum(net.layers.forward(x)));
      sgd->step();
    });
  };
  Session ample({.device = "sim:host"});
  run(ample);
  for (int percent = 0; percent < 100; ++percent) {
    const Bytes budget = std::max(share_of(ample.peak_reserved(), percent / 100.0), 1_KiB);
    Session session({.device = "sim:host", .budget = budget, .policy = "none"});
    try {
      run(session);
    } catch (const OutOfMemory& error) {
      text += error.what();
    }
  }
  EXPECT_THAT(text,
              HasSubstr("[upload] out of memory for layers.1.weight.momentum: asked for "));
  EXPECT_THAT(text, HasSubstr("[conv2d] out of memory in layers.1: asked for "));
  EXPECT_THAT(text, HasSubstr("KiB images ("));
  EXPECT_THAT(text, HasSubstr("KiB layers.1.weight ("));
  EXPECT_THAT(text, HasSubstr("KiB layers.1.weight.momentum ("));
  EXPECT_THAT(text, HasSubstr("KiB layers.1.weight.grad from conv2d_grad_weight ("));
  EXPECT_THAT(text, HasSubstr("KiB from layers.0: conv2d ("));
}

TEST(NamesTest, OperatorsThatRunAgainAreCalledAsTheFirstTime) {
  Bytes peak(0);
  {
    Session session({.device = "sim:host"});
    const Training training(1024);
    session.step([&] { training.step(); });
    peak = session.peak_reserved();
  }
  Session session({.device = "sim:host", .budget = share_of(peak, 0.8), .policy = "dtr"});
  const Training training(1024);
  session.step([&] { training.step(); });
  const EventLog& log = session.events();
  const std::set<std::string> again = names_of(log, EventKind::kRecompute);
  EXPECT_THAT(again, IsSubsetOf(names_of(log, EventKind::kOperator)));
  EXPECT_THAT(again, Contains("layer1.0.bn1: batch_norm"));
  EXPECT_THAT(names_of(log, EventKind::kEvict), Contains("layer1.0.bn1: batch_norm"));
}

TEST(NamesTest, TracesShowThem) {
  Session session({.device = "sim:host"});
  const Training training(2);
  session.step([&] { training.step(); });
  const std::string path = (std::filesystem::path(::testing::TempDir()) /
                            ("tidemark-names-" + std::to_string(::getpid()) + ".json"))
                               .string();
  write_trace(session.events(), path);
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr(R"("name":"layer3.1.conv1: conv2d")"));
  EXPECT_THAT(text, HasSubstr(R"("operator":"conv2d")"));
  std::filesystem::remove(path);
}

// A user's own, that does no more than any module has to.
struct Block : Module {
  explicit Block(ParameterInit& init) : fc(4, 4, init) { register_child("fc", fc); }
  Tensor forward(const Tensor& x) const { return relu(add(fc.forward(x), x)); }
  Linear fc;
};

struct Net : Module {
  explicit Net(const std::string& part) {
    ParameterInit init(1);
    blocks.add<Block>(init);
    blocks.add<Block>(init);
    register_child(part, blocks);
  }
  Sequential blocks;
};

Tensor some_input() { return upload_constant({2, 4}, 1, Category::kData, "x"); }

TEST(NamesTest, ModulesOfUsersHavePaths) {
  Session session({.device = "sim:host"});
  const Net net("body");
  const Tensor x = some_input();
  session.step([&] { net.blocks.forward(x); });
  const std::set<std::string> names = names_of(session.events(), EventKind::kOperator);
  EXPECT_EQ(names, (std::set<std::string>{"body.0.fc: matmul", "body.0: add", "body.0: relu",
                                          "body.1.fc: matmul", "body.1: add", "body.1: relu"}));
}

TEST(NamesTest, MisuseSaysWhereAndLeavesNoPathBehind) {
  Session session({.device = "sim:host"});
  const Net net("body");
  const Tensor x = upload_constant({2, 3}, 1, Category::kData, "x");
  try {
    net.blocks.forward(x);
    FAIL() << "three columns are none of its";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("[linear] "));
    EXPECT_THAT(error.what(), HasSubstr(" (in body.0.fc)"));
  }
  EXPECT_STREQ(current_path(), "");
}

TEST(NamesTest, SessionsOnTwoThreadsDoNotMix) {
  std::map<std::string, std::set<std::string>> names;
  const auto run = [](const std::string& part, std::set<std::string>& seen) {
    Session session({.device = "sim:host"});
    const Net net(part);
    const Tensor x = some_input();
    for (int i = 0; i < 20; ++i) {
      session.step([&] { backward(sum(net.blocks.forward(x))); });
    }
    seen = names_of(session.events(), EventKind::kOperator);
  };
  std::set<std::string>&left = names["left"], &right = names["right"];
  std::thread one([&] { run("left", left); });
  std::thread two([&] { run("right", right); });
  one.join();
  two.join();
  EXPECT_THAT(left, Contains("left.1.fc: matmul"));
  EXPECT_THAT(right, Contains("right.1.fc: matmul"));
  for (const std::string& name : left) EXPECT_THAT(name, Not(HasSubstr("right")));
  for (const std::string& name : right) EXPECT_THAT(name, Not(HasSubstr("left")));
}

TEST(NamesTest, RecordedStepsHaveThemAndAreComparedWithout) {
  const auto record = [](const std::string& part) {
    Session session({.device = "sim:host"});
    const Net net(part);
    const Tensor x = some_input();
    return session.record_step([&] {
      const Tensor loss = sum(net.blocks.forward(x));
      backward(loss);
      for (const NamedTensor& one : net.parameters()) clear_grad(one.tensor);
    });
  };
  const StepTrace body = record("body"), trunk = record("trunk");
  EXPECT_FALSE(body == trunk);
  EXPECT_TRUE(same_program(body, trunk));
  EXPECT_EQ(signature_of(body), signature_of(trunk));
  EXPECT_EQ(body.ops.front().name, "matmul");
  EXPECT_EQ(body.ops.front().call, "body.0.fc: matmul");
  std::set<std::string> storages;
  for (const StepTrace::Storage& storage : body.storages) storages.emplace(storage.name);
  EXPECT_THAT(storages, Contains("body.0.fc.weight"));
  EXPECT_THAT(storages, Contains("body.0.fc.weight.grad"));
  EXPECT_THAT(storages, Contains("body.0.fc: matmul"));
}

}  // namespace
}  // namespace tidemark

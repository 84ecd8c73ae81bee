#include "bench/training_run.h"

#include <cmath>

#include "bench/fit_rule.h"
#include "models/image_models.h"
#include "models/optim/optimizer.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"
#include "runtime/policy/filters/filter.h"

namespace tidemark {
namespace {

constexpr int kThreads = 2;  // CPU threads; kernels' workspaces depend on them

class Network {
 public:
  explicit Network(const TrainingRun& run)
      : run_(run),
        init_(1),
        model_(make_image_model(run.model, options(run), init_)),
        optimizer_(make_sgd(model_->parameters(),
                            {.lr = 0.05, .momentum = 0.9, .weight_decay = 1e-4})) {}

  void train(int64_t batch) {
    model_->train();
    Tensor loss;
    {
      const Tensor images = upload_images(batch), labels = upload_labels(batch);
      const Tensor logits = model_->forward(images);
      loss = cross_entropy(logits, labels);
      const NoGrad no_grad;
      accuracy_count(logits, labels);
    }
    backward(loss);
    optimizer_->step();
  }

  void evaluate(int64_t batch) {
    const NoGrad no_grad;
    model_->train(false);
    const Tensor images = upload_images(batch), labels = upload_labels(batch);
    const Tensor logits = model_->forward(images);
    cross_entropy(logits, labels);
    accuracy_count(logits, labels);
  }

 private:
  static ImageModelOptions options(const TrainingRun& run) {
    return {.image = run.image,
            .channels = run.channels,
            .classes = run.classes,
            .small_images = run.image <= 64};
  }
  Tensor upload_images(int64_t batch) const {
    const Shape shape{batch, run_.image, run_.image, run_.channels};
    return Session::current().upload(TensorMeta::contiguous(DType::kFloat32, shape),
                                     Category::kData, nullptr, nullptr, "images");
  }
  static Tensor upload_labels(int64_t batch) {
    return Session::current().upload(TensorMeta::contiguous(DType::kInt64, Shape{batch}),
                                     Category::kData, nullptr, nullptr, "labels");
  }

  TrainingRun run_;
  ParameterInit init_;
  std::unique_ptr<ImageModel> model_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace

std::string TrainingRun::name() const {
  std::string name = model + "-" + std::to_string(image) + "-b" + std::to_string(batch) + "-" +
                     device.substr(device.find(':') + 1) + "-";
  if (!room) return name + "unmanaged";
  return name + "room" + std::to_string(std::lround(*room * 100)) + "-" + filter;
}

std::vector<TrainingRun> training_runs() {
  const struct {
    TrainingRun run;
    int64_t host_batch, gpu_batch;
  } networks[] = {
      {{.model = "resnet18", .image = 8, .channels = 1, .classes = 10}, 64, 256},
      {{.model = "resnet18"}, 16, 256},
      {{.model = "resnet50"}, 8, 128},
      {{.model = "resnext50_32x4d"}, 8, 128},
  };
  std::vector<TrainingRun> runs;
  for (const bool host : {true, false}) {
    for (const auto& network : networks) {
      TrainingRun run = network.run;
      run.device = host ? "sim:host" : "sim:a100-80gb";
      run.batch = host ? network.host_batch : network.gpu_batch;
      runs.push_back(run);
      for (const double room : {0.5, 0.1}) {
        for (const Filter& filter : filters()) {
          run.room = room;
          run.filter = filter.name;
          runs.push_back(run);
        }
      }
    }
  }
  return runs;
}

Program program_of(const TrainingRun& run) {
  return [run] {
    const auto network = std::make_shared<Network>(run);
    const auto train = [network](int64_t batch) { return [=] { network->train(batch); }; };
    return std::vector<std::function<void()>>{
        train(run.batch), train(run.batch), train(run.batch * 3 / 8),
        [network, run] { network->evaluate(run.batch); }, train(run.batch)};
  };
}

TrainingResult train(const TrainingRun& run, const MakeArena& make_arena) {
  SessionOptions options{.device = run.device, .threads = kThreads};
  options.policy = "delta";
  options.delta.filter = run.filter;
  options.event_capacity = 1 << 20;
  TrainingResult result;
  const Program program = program_of(run);
  const UnmanagedNeed need = measure_unmanaged(options, program);
  result.unmanaged_peak = need.peak;
  if (run.room) {
    options.host_limit = 2 * need.peak;
    const Bytes minimum = find_minimum_budget(options, program, need).budget;
    const double more = *run.room * static_cast<double>((need.peak - minimum).count());
    result.budget = align_up(minimum + Bytes(std::llround(more)));
  } else {
    result.budget = kEndless;
    options.policy = "none";
  }
  options.budget = result.budget;

  auto device = make_device(options.device, {.threads = kThreads});
  auto arena = make_arena(*device, result.budget);
  Session session(options, std::move(device), std::move(arena));
  for (const auto& step : program()) result.steps.push_back(session.step(step));
  session.events().for_each([&](const EventRecord& event) {
    if (event.kind != EventKind::kCompact) return;
    result.moved += event.bytes;
    result.moving += event.end - event.start;
  });
  return result;
}

}  // namespace tidemark

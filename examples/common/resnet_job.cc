#include "examples/common/resnet_job.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "examples/common/checkpointing.h"
#include "examples/common/data_source.h"
#include "examples/common/image_training.h"
#include "models/checkpoint/torchvision.h"
#include "models/checkpoint/weight_file.h"
#include "models/data/loader.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

LoaderOptions train_options(const ImageSchedule& schedule, uint64_t seed) {
  return {.batch = schedule.batch, .shuffle = true, .seed = seed};
}
LoaderOptions test_options(const DataSource& data, const ImageSchedule& schedule) {
  return {.batch = std::min(schedule.batch, data.test_size)};
}

// Supplies batches for as long as they are asked for, epoch after epoch. Without a dataset,
// batches have sizes only.
class BatchSource {
 public:
  BatchSource(const DataSource& data, const ImageSchedule& schedule, uint64_t seed, bool trains)
      : data_(data), schedule_(schedule) {
    if (!data.train || !trains) return;
    loader_ = std::make_unique<Loader>(data.train, train_options(schedule, seed));
  }
  void pin(Device& device) {
    if (loader_) loader_->pin(device);
  }
  HostBatch at(int64_t step) {
    if (!loader_) return shape_only(data_.sample, schedule_.batch_of(step));
    if (step != next_) {
      loader_->seek({step / schedule_.steps_per_epoch, step % schedule_.steps_per_epoch});
    }
    next_ = step + 1;
    std::optional<HostBatch> batch = loader_->next();
    if (!batch) batch = loader_->next();
    return *std::move(batch);
  }

 private:
  const DataSource& data_;
  const ImageSchedule& schedule_;
  std::unique_ptr<Loader> loader_;
  int64_t next_ = 0;
};

// Settings that a continued run must share with the run it continues, beside those that all
// programs have.
WeightMetadata settings_of(const ResNetFlags& flags, const DataSource& data) {
  return {{"program", "train_resnet"},
          {"data", fmt::format("{} ({} images)", data.kind, data.train_size)},
          {"image-size", std::to_string(data.sample[0])},
          {"classes", std::to_string(data.classes)},
          {"stem", flags.stem},
          {"lr", fmt::format("{}", base_rate(flags))}};
}

class ResNetTraining final : public Training {
 public:
  ResNetTraining(const ResNetFlags& flags, const DataSource& data,
                 const ImageSchedule& schedule, Checkpointing& files)
      : flags_(flags),
        data_(data),
        schedule_(schedule),
        files_(files),
        batches_(make_batches(flags, data, schedule)),
        training_(flags, data) {
    if (!flags.load.empty()) {
      const auto file = open_weights(flags.load);
      print_loaded(load_torchvision(training_.model(), *file), flags.load);
    }
    first_step_ = files.begin(training_.model(), training_.optimizer());
  }

  int64_t first_step() const override { return first_step_; }
  void prepare(int64_t step) override {
    batch_ = batches_->at(step);
    training_.set_learning_rate(step, files_.schedule_steps());
  }
  StepOutcome step() override { return training_.train(std::exchange(batch_, {})); }
  std::optional<double> after_step(int64_t done) override {
    files_.after_step(done, training_.model(), training_.optimizer());
    return {};
  }
  void stop(int64_t done) override {
    batches_.reset();
    files_.end(done, training_.model(), training_.optimizer());
    if (!flags_.save.empty()) save_torchvision(flags_.save, training_.model());
  }
  std::optional<std::string> checksum() const override { return training_.checksum(); }
  CarriedParts carried() override { return training_.carried(); }

  Evaluation evaluate(Session& session) override {
    if (!data_.test) return {};
    Loader loader(data_.test, test_options(data_, schedule_));
    loader.pin(session.device());
    int64_t correct = 0;
    double loss = 0;
    while (const std::optional<HostBatch> images = loader.next()) {
      StepOutcome outcome;
      session.step([&] { outcome = training_.evaluate(*images); });
      correct += outcome.correct.value_or(0);
      loss += double{outcome.loss.value_or(0)} * static_cast<double>(images->size);
    }
    const auto size = static_cast<double>(data_.test_size);
    Evaluation evaluation;
    evaluation.accuracy = static_cast<double>(correct) / size;
    evaluation.scores.emplace_back("loss", loss / size);
    return evaluation;
  }

 private:
  static std::unique_ptr<BatchSource> make_batches(const ResNetFlags& flags,
                                                   const DataSource& data,
                                                   const ImageSchedule& schedule) {
    auto batches = std::make_unique<BatchSource>(data, schedule, flags.seed, !flags.evaluate);
    batches->pin(Session::current().device());
    return batches;
  }

  const ResNetFlags& flags_;
  const DataSource& data_;
  const ImageSchedule& schedule_;
  Checkpointing& files_;
  // Declared before the network: pinning is then the first thing on the device's clock, and a
  // simulation of the run, which has no data to pin, differs by a constant only.
  std::unique_ptr<BatchSource> batches_;
  ImageTraining training_;
  HostBatch batch_;
  int64_t first_step_ = 0;
};

class ResNetJob final : public Job {
 public:
  ResNetJob(const ResNetFlags& flags, bool with_data)
      : flags_(flags),
        files_(flags, with_data),
        data_(with_data ? open_data(flags) : describe_data(flags)),
        schedule_(make_schedule(flags, data_)) {
    if (flags.evaluate && with_data && data_.test_size == 0) {
      throw UsageError("--evaluate: " + data_.kind + " data have no images to test on");
    }
    check_weights(flags, data_);
    files_.settle(settings_of(flags, data_), schedule_.steps, schedule_.steps_per_epoch);
  }

  int64_t batch() const override { return schedule_.batch; }
  int64_t steps() const override { return flags_.evaluate ? 0 : schedule_.steps; }
  std::string announcement() const override {
    return fmt::format("{} on {}, images of {}x{}x{}, {} classes", flags_.model, flags_.data,
                       data_.sample[0], data_.sample[1], data_.sample[2], data_.classes);
  }
  Bytes loading_bytes() const override {
    if (flags_.on_simulator()) return Bytes(0);
    const auto part = [&](const std::shared_ptr<const Dataset>& set, int64_t size,
                          const LoaderOptions& options) {
      const Bytes scratch = set ? set->scratch_bytes() : Bytes(0);
      return loader_buffer_bytes(size, data_.sample, scratch, options);
    };
    // One loader at a time, for training or for evaluation; both data sets all the time.
    Bytes sum = part(data_.train, std::max(data_.train_size, schedule_.batch),
                     train_options(schedule_, flags_.seed));
    if (data_.test_size > 0) {
      sum = std::max(sum, part(data_.test, data_.test_size, test_options(data_, schedule_)));
    }
    for (const auto& set : {data_.train, data_.test}) {
      if (set) sum += set->resident_bytes();
    }
    return sum;
  }
  Program dry_run() const override { return training_program(flags_, data_, schedule_); }
  std::shared_ptr<const AlgorithmTable> algorithms() const override {
    return files_.algorithms();
  }
  std::unique_ptr<Training> start() const override {
    return std::make_unique<ResNetTraining>(flags_, data_, schedule_, files_);
  }

 private:
  ResNetFlags flags_;
  mutable Checkpointing files_;
  DataSource data_;
  ImageSchedule schedule_;
};

}  // namespace

std::unique_ptr<Job> open_resnet_job(const ResNetFlags& flags, bool with_data) {
  return std::make_unique<ResNetJob>(flags, with_data);
}

}  // namespace tidemark

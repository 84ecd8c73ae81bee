#include "examples/common/resnet_job.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "examples/common/data_source.h"
#include "examples/common/image_training.h"
#include "models/data/loader.h"

namespace tidemark {
namespace {

// Batches for as long as they are asked for, epoch after epoch; of sizes alone without a
// dataset.
class BatchSource {
 public:
  BatchSource(const DataSource& data, const ImageSchedule& schedule, uint64_t seed)
      : data_(data), schedule_(schedule) {
    if (!data.train) return;
    loader_ = std::make_unique<Loader>(
        data.train, LoaderOptions{.batch = schedule.batch, .shuffle = true, .seed = seed});
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
  Bytes bytes() const {
    return loader_ ? loader_->buffer_bytes() + data_.train->resident_bytes() : Bytes(0);
  }

 private:
  const DataSource& data_;
  const ImageSchedule& schedule_;
  std::unique_ptr<Loader> loader_;
  int64_t next_ = 0;
};

class ResNetTraining final : public Training {
 public:
  ResNetTraining(const ResNetFlags& flags, const DataSource& data,
                 const ImageSchedule& schedule)
      : data_(data),
        schedule_(schedule),
        batches_(make_batches(flags, data, schedule)),
        training_(flags, data) {}

  Bytes loader_bytes() const override { return batches_->bytes(); }
  void prepare(int64_t step) override {
    batch_ = batches_->at(step);
    training_.set_learning_rate(step, schedule_.steps);
  }
  StepOutcome step() override { return training_.train(std::exchange(batch_, {})); }
  void stop(int64_t /*done*/) override { batches_.reset(); }
  std::optional<std::string> checksum() const override { return training_.checksum(); }
  CarriedParts carried() override { return training_.carried(); }

  Evaluation evaluate(Session& session) override {
    if (!data_.test) return {};
    Loader loader(data_.test, {.batch = std::min(schedule_.batch, data_.test_size)});
    loader.pin(session.device());
    int64_t correct = 0;
    while (const std::optional<HostBatch> images = loader.next()) {
      session.step([&] { correct += training_.evaluate(*images).correct.value_or(0); });
    }
    Evaluation evaluation;
    evaluation.accuracy = static_cast<double>(correct) / static_cast<double>(data_.test_size);
    return evaluation;
  }

 private:
  static std::unique_ptr<BatchSource> make_batches(const ResNetFlags& flags,
                                                   const DataSource& data,
                                                   const ImageSchedule& schedule) {
    auto batches = std::make_unique<BatchSource>(data, schedule, flags.seed);
    batches->pin(Session::current().device());
    return batches;
  }

  const DataSource& data_;
  const ImageSchedule& schedule_;
  // Before the network: its pinning is then the first thing on the device's clock, and a
  // simulation of the run, which has no data to pin, differs by a constant.
  std::unique_ptr<BatchSource> batches_;
  ImageTraining training_;
  HostBatch batch_;
};

class ResNetJob final : public Job {
 public:
  ResNetJob(const ResNetFlags& flags, bool with_data)
      : flags_(flags),
        data_(with_data ? open_data(flags) : describe_data(flags)),
        schedule_(make_schedule(flags, data_)) {}

  int64_t batch() const override { return schedule_.batch; }
  int64_t steps() const override { return schedule_.steps; }
  std::string announcement() const override {
    return fmt::format("{} on {}, images of {}x{}x{}, {} classes", flags_.model, flags_.data,
                       data_.sample[0], data_.sample[1], data_.sample[2], data_.classes);
  }
  Program dry_run() const override { return training_program(flags_, data_, schedule_); }
  std::unique_ptr<Training> start() const override {
    return std::make_unique<ResNetTraining>(flags_, data_, schedule_);
  }

 private:
  ResNetFlags flags_;
  DataSource data_;
  ImageSchedule schedule_;
};

}  // namespace

std::unique_ptr<Job> open_resnet_job(const ResNetFlags& flags, bool with_data) {
  return std::make_unique<ResNetJob>(flags, with_data);
}

}  // namespace tidemark

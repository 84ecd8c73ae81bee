#include "examples/finetune/tuning.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "models/checkpoint/hugging_face.h"
#include "models/checkpoint/peft.h"
#include "models/checkpoint/weight_file.h"
#include "models/checkpoint/weights.h"
#include "models/checksum.h"
#include "models/optim/clip.h"
#include "models/optim/schedule.h"
#include "ops/autograd/autograd.h"
#include "runtime/core/text_file.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

constexpr double kRate = 2e-5, kLoraRate = 2e-4;

std::unique_ptr<Llama> make_network(const FinetuneFlags& flags) {
  ParameterInit init(flags.seed);
  init.set_drawing(false);
  init.store_as(flags.stored);
  std::unique_ptr<TextModel> made =
      flags.network.make("clm",
                         {.vocabulary = flags.network.vocabulary,
                          .attention = AttentionImplementation::kMemoryEfficient,
                          .longest = flags.longest()},
                         init);
  std::unique_ptr<Llama> network(dynamic_cast<Llama*>(made.release()));
  network->compute_in(flags.dtype);
  if (!flags.lora) return network;
  init.set_drawing(true);
  init.store_as(DType::kFloat32);
  add_lora(*network, *flags.lora, init);
  return network;
}

// A tensor of the batch; without values, one of its size.
template <class Id>
Tensor upload(const std::vector<Id>& ids, const Shape& shape, const char* name) {
  const auto kept = std::make_shared<const std::vector<Id>>(ids);
  const DType dtype = sizeof(Id) == 8 ? DType::kInt64 : DType::kInt32;
  return Session::current().upload(TensorMeta::contiguous(dtype, shape), Category::kData,
                                   ids.empty() ? nullptr : kept->data(), kept, name);
}

// Rows of a batch.
TuningBatch rows_of(const TuningBatch& batch, const MicroBatch& part) {
  if (part.size == batch.rows) return batch;
  const auto cut = [&]<class Id>(const std::vector<Id>& ids) {
    if (ids.empty()) return ids;
    const auto begin = ids.begin() + part.begin * batch.length;
    return std::vector<Id>(begin, begin + part.size * batch.length);
  };
  TuningBatch rows{.rows = part.size,
                   .length = batch.length,
                   .tokens = cut(batch.tokens),
                   .labels = cut(batch.labels),
                   .starts = cut(batch.starts)};
  rows.counted = std::count_if(rows.labels.begin(), rows.labels.end(),
                               [](int64_t label) { return label != kIgnoreLabel; });
  return rows;
}

// Makes the losses of a step's parts add up to the mean over all labels that count.
Tensor scale_for(int64_t counted) {
  const auto value =
      std::make_shared<const float>(1.0F / static_cast<float>(std::max<int64_t>(counted, 1)));
  return Session::current().upload(TensorMeta::contiguous(DType::kFloat32, Shape{}),
                                   Category::kData, value.get(), value, "loss scale");
}

}  // namespace

double base_rate(const FinetuneFlags& flags) {
  const double rate = flags.lora ? kLoraRate : kRate;
  return flags.optimizer == "sgd" ? 10 * rate : rate;
}

bool saves_network(const FinetuneFlags& flags) { return !flags.lora || flags.merge; }

Tuning::Tuning(const FinetuneFlags& flags)
    : flags_(flags),
      network_(make_network(flags)),
      trained_(flags.trains ? network_->trained() : std::vector<NamedTensor>()),
      optimizer_(make_optimizer(flags, trained_, base_rate(flags), flags.adam)),
      rate_(optimizer_->learning_rate()) {}

void Tuning::load() {
  const auto file = open_weights(flags_.model);
  load_into(*network_, *file,
            {.names =
                 [known = hugging_face_names(*file)](const std::string& ours) {
                   return is_lora(ours) ? std::vector<std::string>() : known(ours);
                 },
             .unexpected_allowed = true,
             .finite = true});
  if (!flags_.adapter.empty()) load_adapter(flags_.adapter, *network_);
}

void Tuning::simulate_load() { tidemark::simulate_load(network_->parameters()); }

void Tuning::simulate_merge() {
  for (const DeferredTensor& each : merged_parameters(*network_)) each.make();
}

void Tuning::set_learning_rate(int64_t step, int64_t steps) {
  optimizer_->set_learning_rate(learning_rate({.kind = *parse_schedule(flags_.schedule),
                                               .rate = rate_,
                                               .warmup_steps = flags_.warmup_steps(steps),
                                               .total_steps = steps},
                                              step));
}

Forward Tuning::forward(const TuningBatch& batch, const Tensor& scale) {
  const Shape shape{batch.rows, batch.length};
  TextInput input{.tokens = upload(batch.tokens, shape, "tokens"),
                  .labels = upload(batch.labels, Shape{shape.elements()}, "labels"),
                  .loss_scale = scale};
  if (flags_.packing) input.starts = upload(batch.starts, shape, "starts");
  const TextOutput output = network_->run(input);
  return {output.loss, output.correct, batch.counted, /*is_share=*/true};
}

StepOutcome Tuning::train(const TuningBatch& batch) {
  network_->train();
  const Tensor scale = scale_for(batch.counted);
  StepOutcome outcome = train_step(
      micro_batches(batch.rows, flags_.micro_batch(batch.rows)),
      [&](const MicroBatch& part) { return forward(rows_of(batch, part), scale); },
      [&] {
        if (flags_.clip > 0) clip_grad_norm_(trained_, flags_.clip);
        optimizer_->step();
      });
  outcome.tokens = batch.used;
  return outcome;
}

StepOutcome Tuning::evaluate(const TuningBatch& batch) {
  const NoGrad no_grad;
  network_->train(false);
  const Forward result = forward(batch, scale_for(batch.counted));
  return {read_scalar<float>(result.loss), read_scalar<int64_t>(result.correct), batch.counted};
}

void Tuning::save(const std::vector<NamedText>& tokenizer) {
  if (!saves_network(flags_)) {
    save_adapter(flags_.output, *network_, *flags_.lora, flags_.model);
    return;
  }
  const bool is_folder = std::filesystem::is_directory(flags_.model);
  save_hugging_face_folder(flags_.output, merged_parameters(*network_), flags_.network.config,
                           is_folder ? flags_.model : "");
  for (const auto& [name, text] : tokenizer) {
    write_text_file((std::filesystem::path(flags_.output) / name).string(), text);
  }
}

std::optional<std::string> Tuning::checksum() const {
  return tensors_checksum({trained_, optimizer_->state()});
}

CarriedParts Tuning::carried() {
  CarriedParts parts{network_->parameters(), optimizer_.get()};
  const std::vector<NamedTensor>& state = optimizer_->state();
  parts.tensors.insert(parts.tensors.end(), state.begin(), state.end());
  return parts;
}

}  // namespace tidemark

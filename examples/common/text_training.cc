#include "examples/common/text_training.h"

#include <utility>

#include "models/checkpoint/hugging_face.h"
#include "models/checkpoint/weight_file.h"
#include "models/checkpoint/weights.h"
#include "models/checksum.h"
#include "models/optim/clip.h"
#include "models/optim/schedule.h"
#include "ops/autograd/autograd.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

std::unique_ptr<TextModel> make_network(const BertFlags& flags, const TextData& data) {
  ParameterInit init(flags.seed);
  return flags.network().make(flags.task,
                              {.vocabulary = data.vocabulary_size,
                               .pad = data.pad,
                               .dropout = flags.dropout,
                               .attention = flags.attention,
                               .longest = flags.length},
                              init);
}

Tensor upload(const TextBatch::Ids& ids, const Shape& shape, const char* name) {
  return Session::current().upload(TensorMeta::contiguous(DType::kInt64, shape),
                                   Category::kData, ids ? ids->data() : nullptr, ids, name);
}

TextInput upload(const BertFlags& flags, const TextBatch& batch) {
  const Shape whole{batch.rows, batch.length};
  TextInput input;
  input.tokens = upload(batch.tokens, whole, "tokens");
  if (flags.task == "mlm") {
    input.positions = upload(batch.positions, Shape{batch.asked}, "masked positions");
  }
  if (flags.task == "squad") {
    input.segments = upload(batch.segments, whole, "segments");
    input.lengths = upload(batch.lengths, Shape{batch.rows}, "lengths");
    input.ends = upload(batch.ends, Shape{batch.rows}, "ends");
  }
  input.labels = upload(batch.labels, Shape{batch.asked}, "labels");
  return input;
}

// A part of `batch`, copied unless it is the whole.
TextBatch rows_of(const TextBatch& batch, const MicroBatch& part) {
  if (part.size == batch.rows) return batch;
  const auto cut = [&](const TextBatch::Ids& ids, int64_t per_row,
                       int64_t less = 0) -> TextBatch::Ids {
    if (!ids) return nullptr;
    const auto begin = ids->begin() + part.begin * per_row;
    std::vector<int64_t> rows(begin, begin + part.size * per_row);
    for (int64_t& id : rows) id -= less;
    return std::make_shared<const std::vector<int64_t>>(std::move(rows));
  };
  const int64_t asked = batch.asked / batch.rows;
  return {.rows = part.size,
          .length = batch.length,
          .asked = part.size * asked,
          .tokens = cut(batch.tokens, batch.length),
          .segments = cut(batch.segments, batch.length),
          .lengths = cut(batch.lengths, 1),
          .positions = cut(batch.positions, asked, part.begin * batch.length),
          .labels = cut(batch.labels, asked),
          .ends = cut(batch.ends, 1)};
}

StepOutcome outcome_of(const Tensor& loss, const Tensor& correct, const TextBatch& batch) {
  StepOutcome outcome{read_scalar<float>(loss), std::nullopt, batch.asked};
  if (correct) outcome.correct = read_scalar<int64_t>(correct);
  return outcome;
}

std::vector<float> logits_of(const Tensor& tensor) {
  std::vector<float> values(static_cast<size_t>(tensor.elements()));
  if (!Session::current().download(tensor, values.data())) return {};
  return values;
}

// Whether the parameter belongs to a task, which a file of weights may lack.
bool is_head(const std::string& parameter, const TextModelInfo& network) {
  const std::string& words = network.words;
  return !parameter.starts_with(words.substr(0, words.find('.') + 1));
}

}  // namespace

double base_rate(const BertFlags& flags) {
  const double rate = flags.task == "squad" ? 5e-5 : flags.network().rate.value_or(1e-4);
  return flags.optimizer == "sgd" ? 10 * rate : rate;
}

TextTraining::TextTraining(const BertFlags& flags, const TextData& data)
    : flags_(flags),
      network_(make_network(flags, data)),
      optimizer_(make_optimizer(
          flags, flags.evaluate ? std::vector<NamedTensor>() : network_->parameters(),
          base_rate(flags))),
      parameters_(network_->parameters()),
      rate_(optimizer_->learning_rate()) {
  network_->compute_in(flags.dtype);
}

void TextTraining::set_learning_rate(int64_t step, int64_t steps) {
  optimizer_->set_learning_rate(learning_rate({.kind = *parse_schedule(flags_.schedule),
                                               .rate = rate_,
                                               .warmup_steps = flags_.warmup,
                                               .total_steps = steps},
                                              step));
}

StepOutcome TextTraining::train(const TextBatch& batch) {
  model().train();
  const auto forward = [&](const MicroBatch& part) {
    const TextBatch rows = rows_of(batch, part);
    const TextOutput output = network_->run(upload(flags_, rows));
    return Forward{output.loss, output.correct, rows.asked};
  };
  return train_step(micro_batches(batch.rows, flags_.micro_batch(batch.rows)), forward, [&] {
    if (flags_.clip > 0) clip_grad_norm_(parameters_, flags_.clip);
    optimizer_->step();
  });
}

TextTraining::Answers TextTraining::evaluate(const TextBatch& batch) {
  const NoGrad no_grad;
  model().train(false);
  const TextOutput output = network_->run(upload(flags_, batch));
  Answers answers{outcome_of(output.loss, output.correct, batch), {}, {}};
  if (output.start) {
    answers.start = logits_of(output.start);
    answers.end = logits_of(output.end);
  }
  return answers;
}

std::optional<std::string> TextTraining::checksum() const {
  return tensors_checksum({parameters_, optimizer_->state()});
}

CarriedParts TextTraining::carried() {
  CarriedParts parts{parameters_, optimizer_.get()};
  const std::vector<NamedTensor>& state = optimizer_->state();
  parts.tensors.insert(parts.tensors.end(), state.begin(), state.end());
  return parts;
}

Program training_program(const BertFlags& flags, TextData& data, int64_t steps) {
  // Only sizes matter, so each occurs once. The first occurs twice: in the second step, all
  // state exists from the beginning.
  std::vector<TextBatch> train, test;
  const auto add = [](std::vector<TextBatch>& kinds, const TextBatch& batch) {
    for (const TextBatch& kind : kinds) {
      if (kind.rows == batch.rows && kind.length == batch.length) return;
    }
    kinds.push_back({.rows = batch.rows, .length = batch.length, .asked = batch.asked});
  };
  const bool vary = flags.task == "squad" && data.batches_per_epoch() > 0;
  if (!flags.evaluate) {
    for (int64_t step = 0; step < (vary ? steps : 1); ++step) add(train, data.train(step));
    train.insert(train.begin(), train.front());
  }
  for (int64_t i = 0; i < data.test_batches(); ++i) add(test, data.test(i));
  const bool loads = !flags.load.empty() || flags.resume;
  return [=, &data] {
    const auto training = std::make_shared<TextTraining>(flags, data);
    std::vector<std::function<void()>> all;
    all.reserve(train.size() + test.size() + 1);
    for (const TextBatch& batch : train) all.emplace_back([=] { training->train(batch); });
    for (const TextBatch& batch : test) all.emplace_back([=] { training->evaluate(batch); });
    if (loads) all.emplace_back([=] { simulate_load(training->carried().tensors); });
    return all;
  };
}

void check_weights(const BertFlags& flags, const TextData& data) {
  if (flags.load.empty()) return;
  const auto file = open_weights(flags.load);
  const std::string advice = flags.config
                                 ? ""
                                 : ". Give the --model with the file's sizes, or --load the "
                                   "folder with its config.json";
  const std::string other = difference(sizes_in(*file, flags.network()), flags.network().sizes,
                                       flags.config ? "config.json" : flags.model);
  if (!other.empty()) {
    throw UsageError("--load: " + flags.load + ": " + other + advice);
  }
  Session session({.device = "sim:host",
                   .threads = 1,
                   .budget = Bytes(int64_t{1} << 50),
                   .policy = "none"});
  const std::unique_ptr<TextModel> network = make_network(flags, data);
  const WeightNames names = hugging_face_names(*file);
  for (const NamedTensor& parameter : network->parameters()) {
    const WeightEntry* entry = file->find(names(parameter.name)[0]);
    if (entry == nullptr) {
      if (is_head(parameter.name, flags.network())) continue;
      throw UsageError("--load: " + flags.load + ": '" + parameter.name + "', which " +
                       flags.model + " needs, is missing" + advice);
    }
    const Shape& shape = parameter.tensor.shape();
    if (entry->dtype == DType::kFloat32 && entry->shape == shape) continue;
    throw UsageError("--load: " + flags.load + ": '" + entry->name + "' is " + entry->type +
                     ' ' + entry->shape.to_string() +
                     (entry->dtype
                          ? ", and this run takes F32 " + shape.to_string()
                          : ", a type that cannot be read (models/checkpoint/README)"));
  }
}

}  // namespace tidemark

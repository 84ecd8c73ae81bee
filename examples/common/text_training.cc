#include "examples/common/text_training.h"

#include <utility>

#include "models/bert.h"
#include "models/checkpoint/hugging_face.h"
#include "models/checkpoint/weight_file.h"
#include "models/checkpoint/weights.h"
#include "models/checksum.h"
#include "models/gpt2.h"
#include "models/optim/clip.h"
#include "models/optim/schedule.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

template <class Options>
Options with_flags(Options options, const BertFlags& flags, const TextData& data) {
  options.vocabulary = data.vocabulary_size;
  options.dropout = options.attention_dropout = flags.dropout;
  options.attention = flags.attention;
  return options;
}

BertOptions bert(const BertFlags& flags, const TextData& data) {
  BertOptions options = with_flags(flags.bert(), flags, data);
  options.pad = data.pad;
  return options;
}

TextNetwork::Output guesses(const Tensor& logits, const Tensor& labels) {
  TextNetwork::Output output;
  output.loss = cross_entropy(logits, labels);
  const NoGrad no_grad;
  output.correct = accuracy_count(logits, labels);
  return output;
}

template <class Model>
class NetworkWith : public TextNetwork {
 public:
  template <class Options>
  NetworkWith(const Options& options, ParameterInit& init) : model_(options, init) {}
  Module& module() override { return model_; }

 protected:
  Model model_;
};

class Masked final : public NetworkWith<BertForMaskedLm> {
 public:
  using NetworkWith::NetworkWith;
  Output run(const Input& input) const override {
    return guesses(model_.logits({.tokens = input.tokens}, input.positions), input.labels);
  }
};

class Causal final : public NetworkWith<Gpt2> {
 public:
  using NetworkWith::NetworkWith;
  Output run(const Input& input) const override {
    return guesses(model_.logits(input.tokens), input.labels);
  }
};

class Spans final : public NetworkWith<BertForSpans> {
 public:
  using NetworkWith::NetworkWith;
  Output run(const Input& input) const override {
    const BertForSpans::Logits logits = model_.logits(
        {.tokens = input.tokens, .segments = input.segments, .keys = input.lengths});
    return {BertForSpans::loss(logits, input.labels, input.ends), {}, logits.start, logits.end};
  }
};

std::unique_ptr<TextNetwork> make_network(const BertFlags& flags, const TextData& data) {
  ParameterInit init(flags.seed);
  if (flags.task == "clm") {
    return std::make_unique<Causal>(with_flags(flags.gpt2(), flags, data), init);
  }
  if (flags.task == "squad") return std::make_unique<Spans>(bert(flags, data), init);
  return std::make_unique<Masked>(bert(flags, data), init);
}

Tensor upload(const TextBatch::Ids& ids, const Shape& shape, const char* name) {
  return Session::current().upload(TensorMeta::contiguous(DType::kInt64, shape),
                                   Category::kData, ids ? ids->data() : nullptr, ids, name);
}

TextNetwork::Input upload(const BertFlags& flags, const TextBatch& batch) {
  const Shape whole{batch.rows, batch.length};
  TextNetwork::Input input;
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
bool is_head(const std::string& name) {
  return name.starts_with("cls.") || name.starts_with("lm_head.") ||
         name.starts_with("qa_outputs.");
}

}  // namespace

double base_rate(const BertFlags& flags) {
  double rate = 1e-4;
  if (flags.model == "bert-tiny") rate = 1e-3;
  if (flags.task == "squad") rate = 5e-5;
  return flags.optimizer == "sgd" ? 10 * rate : rate;
}

TextTraining::TextTraining(const BertFlags& flags, const TextData& data)
    : flags_(flags),
      network_(make_network(flags, data)),
      optimizer_(make_optimizer(
          flags, flags.evaluate ? std::vector<NamedTensor>() : network_->module().parameters(),
          base_rate(flags))),
      parameters_(network_->module().parameters()),
      rate_(optimizer_->learning_rate()) {
  network_->module().compute_in(flags.dtype);
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
    const TextNetwork::Output output = network_->run(upload(flags_, rows));
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
  const TextNetwork::Output output = network_->run(upload(flags_, batch));
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
  const SafetensorsFile file = open_weights(flags.load);
  const std::string other = difference(sizes_in(file), sizes_of(flags.network()),
                                       flags.config ? "config.json" : flags.model);
  if (!other.empty()) {
    throw UsageError("--load: " + flags.load + ": " + other +
                     (flags.config ? ""
                                   : ". Give the --model with the file's sizes, or --load the "
                                     "folder with its config.json"));
  }
  Session session({.device = "sim:host",
                   .threads = 1,
                   .budget = Bytes(int64_t{1} << 50),
                   .policy = "none"});
  const std::unique_ptr<TextNetwork> network = make_network(flags, data);
  const WeightNames names = hugging_face_names(file);
  for (const NamedTensor& parameter : network->module().parameters()) {
    const SafetensorsEntry* entry = file.find(names(parameter.name)[0]);
    if (entry == nullptr) {
      if (is_head(parameter.name)) continue;
      throw UsageError("--load: " + flags.load + ": '" + parameter.name + "', which " +
                       flags.model + " needs, is missing");
    }
    const Shape& shape = parameter.tensor.shape();
    if (entry->dtype == DType::kFloat32 && entry->shape == shape) continue;
    throw UsageError("--load: " + flags.load + ": '" + entry->name + "' is " + entry->type +
                     ' ' + entry->shape.to_string() + ", and this run takes F32 " +
                     shape.to_string());
  }
}

}  // namespace tidemark

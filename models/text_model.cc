#include "models/text_model.h"

#include <string>
#include <utility>

#include "models/config_json.h"
#include "models/text/token_batch.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/loss/loss.h"
#include "ops/reduce/reduce.h"
#include "runtime/core/errors.h"

namespace tidemark {

void refuse_packed(const TextInput& input, const char* network) {
  for (const auto& [tensor, name] :
       {std::pair{&input.loss_scale, "loss_scale"}, std::pair{&input.starts, "starts"}}) {
    if (!*tensor) continue;
    throw UsageError("[" + std::string(network) + "] '" + name +
                     "' is given, which this network does not take");
  }
}

TextOutput score_words(const Tensor& logits, const Tensor& labels) {
  TextOutput output{.loss = cross_entropy(logits, labels)};
  const NoGrad no_grad;
  output.correct = accuracy_count(logits, labels);
  return output;
}

TextOutput score_words(const Tensor& rows, const Tensor& weight, const TextInput& input) {
  const LinearCrossEntropy made = linear_cross_entropy(
      rows, weight, input.labels, {.ignore_index = kIgnoreLabel, .scale = input.loss_scale});
  return {.loss = made.loss, .correct = made.correct};
}

std::string difference(const TextModelSizes& ours, const TextModelSizes& theirs,
                       const std::string& name) {
  struct Size {
    int64_t ours, theirs;
    const char *before, *after;
  };
  std::string here, there;
  for (const Size& size : {Size{ours.layers, theirs.layers, "", " layers"},
                           Size{ours.width, theirs.width, "hidden size ", ""},
                           Size{ours.heads, theirs.heads, "", " heads"},
                           Size{ours.inner, theirs.inner, "intermediate size ", ""},
                           Size{ours.positions, theirs.positions, "", " positions"}}) {
    if (size.ours == size.theirs || size.ours == 0 || size.theirs == 0) continue;
    const std::string comma = here.empty() ? "" : ", ";
    here += comma + size.before + std::to_string(size.ours) + size.after;
    there += comma + size.before + std::to_string(size.theirs) + size.after;
  }
  return here.empty() ? "" : here + "; " + name + " has " + there;
}

std::unique_ptr<TextModel> TextModelInfo::make(const std::string& task,
                                               const TextModelOptions& options,
                                               ParameterInit& init) const {
  for (const Named<MakeTextModel>& one : tasks) {
    if (one.name == task) return one.value(options, init);
  }
  throw UsageError("[text model] " + family + " is not made for the task '" + task +
                   "'; it is for " + listed(names_of(tasks), " and "));
}

std::string TextModelInfo::config_with(int64_t vocabulary_size) const {
  nlohmann::json json = nlohmann::json::parse(config);
  json["vocab_size"] = vocabulary_size;
  return json.dump();
}

}  // namespace tidemark

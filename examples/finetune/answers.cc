#include "examples/finetune/answers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "examples/common/console.h"
#include "examples/common/interrupt.h"
#include "examples/common/training.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/compare.h"
#include "runtime/core/errors.h"
#include "runtime/core/philox.h"

namespace tidemark {
namespace {

constexpr uint32_t kSampleStream = 0x53414d50;

// A number in [0, 1) for the n-th token of an answer.
double draw(uint64_t seed, size_t answer, int64_t token) {
  const auto words = philox4x32(
      {static_cast<uint32_t>(token), 0, static_cast<uint32_t>(answer), kSampleStream},
      philox_key(seed));
  return uniform_float(words[0]);
}

// The token that the flags choose from the logits; `unit` is a random number in [0, 1).
int32_t choose(const GenerateFlags& flags, std::span<const float> logits, double unit) {
  const auto likeliest = std::max_element(logits.begin(), logits.end());
  if (flags.temperature == 0) return static_cast<int32_t>(likeliest - logits.begin());
  std::vector<double> weights(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    weights[i] = std::exp((double{logits[i]} - *likeliest) / flags.temperature);
  }
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return weights[static_cast<size_t>(a)] > weights[static_cast<size_t>(b)];
  });
  const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
  double kept = 0;
  size_t count = 0;
  while (count < order.size() && (count == 0 || kept < flags.top_p * all)) {
    kept += weights[static_cast<size_t>(order[count++])];
  }
  double left = unit * kept;
  for (size_t i = 0; i + 1 < count; ++i) {
    left -= weights[static_cast<size_t>(order[i])];
    if (left < 0) return order[i];
  }
  return order[count - 1];
}

Tensor upload(const std::vector<int64_t>& tokens) {
  const auto kept = std::make_shared<const std::vector<int64_t>>(tokens);
  const bool has_data = Session::current().device().has_data();
  return Session::current().upload(
      TensorMeta::contiguous(DType::kInt64, {1, static_cast<int64_t>(tokens.size())}),
      Category::kData, has_data ? kept->data() : nullptr, kept, "tokens");
}

// The logits after `tokens`; waits for them. Empty on devices without data.
std::vector<float> logits_after(const std::vector<int64_t>& tokens, const Llama& network,
                                LlamaCache& cache) {
  const NoGrad no_grad;
  const Tensor logits = cast(network.next(upload(tokens), cache), DType::kFloat32);
  std::vector<float> values(static_cast<size_t>(logits.elements()));
  if (!Session::current().download(logits, values.data())) return {};
  return values;
}

std::vector<int32_t> encoded(const std::string& prompt, const ModelTokenizer& model) {
  if (!model.chat) {
    std::vector<int32_t> ids = model.tokenizer.encode(
        prompt, {.add_special_tokens = false, .find_special_tokens = false});
    if (model.begin_of_text) ids.insert(ids.begin(), *model.begin_of_text);
    return ids;
  }
  const std::vector<ChatMessage> chat{{"user", prompt}};
  return encode_chat(model.tokenizer, model.chat->render(chat, true)).ids;
}

void print_answer(const FinetuneFlags& flags, const Llama& network, const ModelTokenizer& model,
                  Session& session, size_t number) {
  const std::vector<int32_t> prompt = encoded(flags.generate.prompts[number], model);
  LlamaCache cache(network.options(), flags.longest(), network.compute_type());
  TokenStream text(model.tokenizer);
  std::vector<int64_t> tokens(prompt.begin(), prompt.end());
  for (int64_t i = 0; i < flags.generate.longest && cache.length() < cache.longest(); ++i) {
    if (interrupt_requested()) break;
    std::vector<float> logits;
    session.step([&] { logits = logits_after(tokens, network, cache); });
    const int32_t token = choose(flags.generate, logits, draw(flags.seed, number, i));
    if (model.stops.contains(token)) break;
    write_console(stdout, text.add(token));
    tokens = {token};
  }
  write_console(stdout, text.end() + "\n");
}

}  // namespace

void check_prompts(const FinetuneFlags& flags, const ModelTokenizer& model) {
  for (const std::string& prompt : flags.generate.prompts) {
    const auto length = static_cast<int64_t>(encoded(prompt, model).size());
    if (length > 0 && length <= flags.length) continue;
    throw UsageError(fmt::format("--generate: a prompt has {} tokens; --seq-length is {}",
                                 length, flags.length));
  }
}

void print_answers(const FinetuneFlags& flags, Llama& network, const ModelTokenizer& model,
                   Session& session) {
  network.train(false);
  const std::vector<std::string>& prompts = flags.generate.prompts;
  for (size_t i = 0; i < prompts.size() && !interrupt_requested(); ++i) {
    print_out("\n> {}\n", prompts[i]);
    print_answer(flags, network, model, session, i);
  }
}

void simulate_answer(const FinetuneFlags& flags, Llama& network) {
  network.train(false);
  LlamaCache cache(network.options(), flags.longest(), network.compute_type());
  logits_after(std::vector<int64_t>(static_cast<size_t>(flags.length)), network, cache);
  if (cache.length() == cache.longest()) return;
  logits_after({0}, network, cache);
}

}  // namespace tidemark

#include "tests/stress/random_graph.h"

#include <utility>

#include "models/checksum.h"
#include "ops/attention/attention.h"
#include "ops/attention/rotary.h"
#include "ops/autograd/autograd.h"
#include "ops/conv/conv.h"
#include "ops/linear/linear.h"
#include "ops/linear/matmul.h"
#include "ops/loss/linear_cross_entropy.h"
#include "ops/loss/loss.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/rms_norm.h"
#include "ops/norm/running_stats.h"
#include "ops/optimizer/optimizer.h"
#include "ops/pool/avg_pool2d.h"
#include "ops/pool/max_pool2d.h"
#include "ops/pool/upsample.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "runtime/session/session.h"
#include "tests/support/machine.h"

namespace tidemark::testing {
namespace {

constexpr int64_t kNarrow = 4, kWide = 8;
constexpr int64_t kBatch = 2, kSide = 7;
constexpr size_t kMaxLive = 6;
constexpr double kEpsilon = 1e-5;

constexpr int64_t kChannels[2] = {kNarrow, kWide};
size_t width_of(const Tensor& x) { return x.extent(3) == kNarrow ? 0 : 1; }

// The same values without the graph behind them.
Tensor detached(const Tensor& x) { return x.view(x.meta()); }

template <class T>
Tensor upload_values(const Shape& shape, DType dtype, Category category,
                     std::vector<T> values) {
  auto data = std::make_shared<const std::vector<T>>(std::move(values));
  return Session::current().upload(TensorMeta::contiguous(dtype, shape), category, data->data(),
                                   data);
}

}  // namespace

Tensor RandomGraph::trained(Tensor tensor) {
  require_grad(tensor);
  auto state = [&] {
    return upload_constant(tensor.shape(), 0, Category::kOptimizerState, "state");
  };
  const size_t i = parameters_.size();
  parameters_.push_back(
      {tensor, state(), state(), narrow_like(tensor, (i & 1) != 0, (i & 2) != 0)});
  return tensor;
}

AdamUpdate RandomGraph::narrow_like(const Tensor& tensor, bool master, bool eight_bit) {
  const Shape& shape = tensor.shape();
  const auto zeros = [&]<class T>(T, DType dtype, Category category) {
    return upload_values(shape, dtype, category,
                         std::vector<T>(static_cast<size_t>(shape.elements())));
  };
  const auto state = [&](const Shape& of) {
    return upload_constant(of, 0, Category::kOptimizerState, "narrow state");
  };
  AdamUpdate made{};
  made.param = zeros(BFloat16(), DType::kBFloat16, Category::kParameter);
  for (Tensor* each : {&made.m, &made.v}) {
    *each =
        eight_bit ? zeros(uint8_t(), DType::kUInt8, Category::kOptimizerState) : state(shape);
  }
  if (eight_bit) {
    const Shape scales{adam_scales(shape.elements())};
    made.m_scale = state(scales);
    made.v_scale = state(scales);
  }
  if (master) made.master = state(shape);
  return made;
}

RandomGraph::RandomGraph(uint32_t seed, std::vector<uint64_t>* read)
    : random_(seed), init_(seed), read_(read) {
  for (size_t in = 0; in < 2; ++in) {
    const int64_t c = kChannels[in];
    for (size_t out = 0; out < 2; ++out) {
      const int64_t k = kChannels[out];
      conv3_[in][out] = trained(init_.kaiming_normal_fan_out({k, 3, 3, c}));
      conv1_[in][out] = trained(init_.kaiming_normal_fan_out({k, 1, 1, c}));
    }
    grouped_[in] = trained(init_.kaiming_normal_fan_out({c, 3, 3, c / 2}));
    bias_[in] = trained(init_.uniform({c}, 0.5));
    square_[in] = trained(init_.uniform({c, c}, 0.5));
    norm_[in] = {trained(init_.uniform({c}, 1)), trained(init_.uniform({c}, 1)),
                 ParameterInit::buffer({c}, 0), ParameterInit::buffer({c}, 1)};
    buffers_.push_back(ParameterInit::buffer({kBatch, kSide, kSide, c}, 0.25F));
    buffers_.push_back(ParameterInit::buffer({c, kSide}, 0.5F));
  }
}

void RandomGraph::step() {
  ++steps_;
  for (int64_t n = 1 + pick(3); n > 0; --n) {
    micro_batch();
    if (once_in(2)) evaluation();
  }
  update();
}

void RandomGraph::finish() {
  for (const Parameter& parameter : parameters_) {
    read(parameter.value);
    read(parameter.first);
    read(parameter.second);
    for (const Tensor* tensor : {&parameter.narrow.param, &parameter.narrow.m,
                                 &parameter.narrow.v, &parameter.narrow.master}) {
      if (*tensor) read(*tensor);
    }
  }
  for (const Norm& norm : norm_) {
    read(norm.mean);
    read(norm.var);
  }
  for (const Tensor& buffer : buffers_) read(buffer);
  for (const Tensor& tensor : kept_) read(tensor);
}

void RandomGraph::read(const Tensor& tensor) {
  const NoGrad no_grad;
  const Tensor whole = contiguous(tensor);
  std::vector<std::byte> bytes(static_cast<size_t>(whole.meta().bytes().count()));
  if (!Session::current().download(whole, bytes.data())) return;
  Checksum checksum;
  checksum.add(bytes);
  read_->push_back(checksum.value());
}

void RandomGraph::micro_batch() {
  const int64_t c = kChannels[pick(2)];
  const Shape shape{kBatch, kSide, kSide, c};
  live_ = {upload_values(shape, DType::kFloat32, Category::kData,
                         draw_normal(random_(), 0, shape.elements(), 1))};
  // What was kept comes back as data.
  for (const Tensor& tensor : kept_) {
    if (once_in(2)) live_.push_back(tensor);
  }
  const int64_t calls = 8 + pick(10);
  for (int64_t i = 0; i < calls; ++i) {
    if (once_in(12)) read(any(live_));
    if (once_in(6)) write_in_place();
    live_.push_back(grow(any(live_)));
    // Handles go in any order, the data among them.
    while (live_.size() > kMaxLive) live_.erase(live_.begin() + pick(kMaxLive));
  }
  // Backward through what led to one or two of them; the rest of the graph is dropped before or
  // after.
  Tensor total = loss(live_.back());
  if (once_in(2)) total = total + mean(tanh(any(live_)));
  if (once_in(3)) kept_.push_back(detached(any(live_)));
  if (once_in(2)) live_.clear();
  if (requires_grad(total)) backward(total);
  live_.clear();
  read(total);
  while (kept_.size() > 2) kept_.erase(kept_.begin());
}

// Without a graph, with running statistics, and writing over results.
void RandomGraph::evaluation() {
  const NoGrad no_grad;
  live_ = {buffers_[once_in(2) ? 0 : 2]};
  for (int64_t i = 2 + pick(5); i > 0; --i) {
    const Tensor x = any(live_);
    const Norm& norm = norm_[width_of(x)];
    const Tensor y = once_in(2) ? contiguous(grow(x))
                                : batch_norm_inference(x, norm.gamma, norm.beta, norm.mean,
                                                       norm.var, kEpsilon, Activation::kReLU);
    // Computed from a y that is overwritten then, where it may be evicted.
    const Tensor z = relu(y);
    if (once_in(2)) {
      copy_(narrow(y, 3, 1, 2), narrow(z, 3, 0, 2));
      add_(transpose(y, 1, 2), mean(z));
    }
    live_.push_back(y);
    live_.push_back(z);
  }
  read(live_.back());
  if (once_in(2)) kept_.push_back(live_.back());
  live_.clear();
}

// Bounded by tanh: a random network's gradients may be of any size.
void RandomGraph::update() {
  const NoGrad no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Parameter& parameter = parameters_[i];
    const Tensor gradient = grad_of(parameter.value);
    if (!gradient) continue;
    if (once_in(4)) read(gradient);
    if (i % 2 == 0) {
      sgd_step_(parameter.value, tanh(gradient), parameter.first,
                {.lr = 0.05, .momentum = 0.9, .weight_decay = 0.01}, /*first_step=*/false);
    } else {
      adam_step_(parameter.value, tanh(gradient), parameter.first, parameter.second,
                 {.lr = 0.01, .weight_decay = 0.01, .decoupled = once_in(2)}, steps_);
    }
    if (once_in(2)) {
      parameter.narrow.grad = cast(tanh(gradient), DType::kBFloat16);
      const AdamUpdate& by = parameter.narrow;
      if (by.master.defined() && by.m.dtype() == DType::kFloat32 && steps_ % 2 == 0) {
        const SgdUpdate sgd{by.param, by.grad, by.m, by.master};
        sgd_step_({&sgd, 1}, {.lr = 0.01, .momentum = 0.9}, /*first_step=*/false);
      } else {
        adam_step_({&by, 1}, {.lr = 0.01}, steps_, i);
      }
      parameter.narrow.grad = {};
    }
    clear_grad(parameter.value);
  }
  for (const Tensor& tensor : kept_) {
    if (tensor.meta().is_contiguous() && once_in(3)) mul_(tensor, 0.5);
  }
}

// Buffers are read by operators that save nothing of them, so writing is allowed at any time;
// what was computed from the old contents must keep them.
void RandomGraph::write_in_place() {
  const NoGrad no_grad;
  const Tensor& target = any(buffers_);
  const bool image = target.shape().rank() == 4;
  switch (pick(6)) {
    case 0: add_(target, upload_constant({1}, 0.125F, Category::kData, "shift")); break;
    case 1: mul_(target, 0.75); break;
    case 2: fill_(narrow(target, 0, 1, 1), 0.5); break;
    case 3:
      if (image) {
        copy_(transpose(target, 1, 2), transpose(tanh(target), 1, 2));
      } else {
        copy_(narrow(target, 1, 2, 3), narrow(sigmoid(target), 1, 0, 3));
      }
      break;
    case 4: add_(reshape(target, {-1}), scale(reshape(target, {-1}), -0.5)); break;
    default: add_(target, scale(narrow(target, 0, 0, 1), 0.5)); break;
  }
}

Tensor RandomGraph::grow(const Tensor& x) {
  switch (pick(20)) {
    case 0:
    case 1:
    case 2: return convolve(x);
    case 3:
    case 4:
    case 5: return normalise(x);
    case 6: return relu(x);
    case 7: return once_in(2) ? tanh(x) : sigmoid(scale(x, 0.5));
    case 8:
    case 9: return combine(x);
    case 10: return pool(x);
    case 11: return multiply(x);
    case 12:
    case 13: return look_differently(x);
    case 14: return dropout(x, 0.3);
    case 15:
    case 16: return narrowly(x);
    case 17:
    case 18: return llama(x);
    default: return soften(x);
  }
}

Tensor RandomGraph::convolve(const Tensor& x) {
  const size_t in = width_of(x), out = static_cast<size_t>(pick(2));
  const Tensor bias = once_in(2) ? bias_[out] : Tensor();
  switch (pick(4)) {
    case 0: return conv2d(x, conv1_[in][out], bias);
    case 1: return conv2d(x, grouped_[in], {}, {.padding = {1, 1}, .groups = 2});
    case 2: return conv2d(x, conv3_[in][out], bias, {.stride = {2, 2}, .padding = {1, 1}});
    default: return conv2d(x, conv3_[in][out], bias, {.padding = {2, 2}, .dilation = {2, 2}});
  }
}

Tensor RandomGraph::normalise(const Tensor& x) {
  const Norm& norm = norm_[width_of(x)];
  BatchNormResult result;
  switch (pick(3)) {
    case 0: result = batch_norm(x, norm.gamma, norm.beta, kEpsilon); break;
    case 1: {
      const Activation f{1 + pick(3)};
      result = batch_norm(x, norm.gamma, norm.beta, kEpsilon, f);
      break;
    }
    default: {
      Tensor residual = x;
      for (const Tensor& other : live_) {
        if (other.shape() == x.shape() && once_in(2)) residual = other;
      }
      result = batch_norm(x, norm.gamma, norm.beta, kEpsilon, Activation::kReLU, residual);
    }
  }
  const NoGrad no_grad;
  update_running_stats_(norm.mean, norm.var, result.mean, result.var, 0.1,
                        x.elements() / x.extent(3));
  return result.y;
}

Tensor RandomGraph::partner(const Tensor& x) {
  const size_t width = width_of(x);
  switch (pick(5)) {
    case 0: return bias_[width];
    case 1: return mean(x, {1, 2}, /*keep=*/true);
    case 2: return normal({x.extent(1), 1, 1}, 0, 0.5);
    case 3: return scale(narrow(transpose(buffers_[2 * width + 1], 0, 1), 0, 0, 1), 1.5);
    default:
      for (const Tensor& other : live_) {
        if (other.shape() == x.shape()) return other;
      }
      return x;
  }
}

Tensor RandomGraph::combine(const Tensor& x) {
  const Tensor other = partner(x);
  switch (pick(5)) {
    case 0: return x + other;
    case 1: return other - x;
    case 2: return tanh(x * other);
    case 3: return where(gt(x, other), x, other);
    default: return add_scaled(x, other, -0.5);
  }
}

Tensor RandomGraph::pool(const Tensor& x) {
  switch (pick(6)) {
    case 0: return adaptive_avg_pool2d(x, 1 + pick(3), 1 + pick(3));
    case 1:
    case 2:
      return upsample_to(x, {1 + pick(kSide), 1 + pick(kSide)},
                         static_cast<Interpolation>(pick(3)));
    case 3:
      if (x.extent(1) >= 2 && x.extent(2) >= 2) return avg_pool2d(x, {});
      [[fallthrough]];
    default:
      return max_pool2d(
          x, {.window = {3, 3}, .stride = {1 + pick(2), 1 + pick(2)}, .padding = {1, 1}});
  }
}

Tensor RandomGraph::multiply(const Tensor& x) {
  const size_t width = width_of(x);
  if (once_in(2)) return linear(x, square_[width], once_in(2) ? bias_[width] : Tensor());
  const Tensor rows = reshape(x, {-1, x.extent(3)});
  const Tensor gram =
      matmul(rows, rows, /*transpose_a=*/true);  // (C, C), of a tensor with itself
  return reshape(matmul(rows, tanh(gram), false, once_in(2)), x.shape());
}

Tensor RandomGraph::look_differently(const Tensor& x) {
  switch (pick(7)) {
    case 0: return transpose(x, 1, 2);
    case 1: return contiguous(transpose(x, 1, 2));
    case 2: return contiguous(expand(mean(x, {1}, /*keep=*/true), x.shape()));
    case 3: return expand(narrow(x, 0, 0, 1), x.shape());
    case 4: {
      const int64_t half = x.extent(3) / 2;
      return concat({narrow(x, 3, half, half), narrow(x, 3, 0, half)}, 3);
    }
    case 5: return reshape(permute(x, {0, 2, 1, 3}), x.shape());
    default: return x.extent(1) > 2 ? narrow(x, 1, 1, x.extent(1) - 2) : x;
  }
}

Tensor RandomGraph::soften(const Tensor& x) {
  switch (pick(3)) {
    case 0: return softmax(x);
    case 1: return log_softmax(x);
    default: return exp(scale(tanh(x), 0.5)) + unsqueeze(max(x).first, 3);
  }
}

Tensor RandomGraph::llama(const Tensor& x) {
  const size_t width = width_of(x);
  switch (pick(5)) {
    case 0: return rms_norm(x, norm_[width].gamma);
    // A weight without a gradient.
    case 1: return rms_norm(x, detached(bias_[width]));
    case 2: {
      const int64_t tokens = x.extent(1), half = x.extent(3) / 2;
      const Tensor angles = scale(narrow(buffers_[2 * width + 1], 0, 0, half), 2);
      const Tensor rows = expand(unsqueeze(mean(angles, {1}), 0), {tokens, half});
      return rotary(x, tanh(rows), sigmoid(rows));
    }
    case 3: {  // rows of two sequences each
      const int64_t batch = x.extent(0), tokens = x.extent(1), second = tokens / 2;
      std::vector<int32_t> starts(static_cast<size_t>(batch * tokens));
      for (size_t i = 0; i < starts.size(); ++i) {
        const int64_t token = static_cast<int64_t>(i) % tokens;
        starts[i] = static_cast<int32_t>(token < second ? 0 : second);
      }
      AttentionOptions options;
      options.starts = upload_values(Shape{batch, tokens}, DType::kInt32, Category::kData,
                                     std::move(starts));
      options.causal = once_in(2);
      options.dropout = once_in(2) ? 0.1 : 0;
      if (once_in(2)) options.implementation = AttentionImplementation::kMaterialised;
      return scaled_dot_product_attention(linear(x, square_[width]), x, tanh(x), options);
    }
    default: {
      const Tensor up = linear(x, square_[width]);
      return once_in(2) ? silu_mul(x, up) : silu_mul(up, tanh(up));
    }
  }
}

Tensor RandomGraph::narrowly(const Tensor& x) {
  const size_t in = width_of(x), out = static_cast<size_t>(pick(2));
  const auto narrow_type = [](const Tensor& tensor) { return cast(tensor, DType::kBFloat16); };
  Tensor y = narrow_type(x);
  int64_t kind = pick(6);
  if (kind < 2 && !has_bfloat16()) kind += 2;
  switch (kind) {
    case 0: y = conv2d(y, narrow_type(conv3_[in][out]), bias_[out], {.padding = {1, 1}}); break;
    case 1: y = linear(relu(y), narrow_type(square_[in]), bias_[in]); break;
    case 2:
      y = batch_norm(y, norm_[in].gamma, norm_[in].beta, kEpsilon, Activation::kReLU, tanh(y))
              .y;
      break;
    case 3: y = y + narrow_type(bias_[in]); break;
    case 4: y = max_pool2d(dropout(y, 0.3), {.window = {3, 3}, .padding = {1, 1}}); break;
    default: y = y * narrow_type(mean(transpose(y, 1, 2), {1, 2}, /*keep=*/true)); break;
  }
  return cast(y, DType::kFloat32);
}

Tensor RandomGraph::loss(const Tensor& x) {
  const size_t width = width_of(x);
  std::vector<int64_t> values;
  for (int64_t n = 0; n < x.extent(0); ++n) values.push_back(pick(kChannels[width]));
  const Tensor labels =
      upload_values(Shape{x.extent(0)}, DType::kInt64, Category::kData, std::move(values));
  const Tensor rows = mean(x, {1, 2});
  if (once_in(2)) {
    return cross_entropy(linear(rows, square_[width], bias_[width]), labels);
  }
  LinearCrossEntropyOptions options;
  if (once_in(2)) options.ignore_index = 0;
  if (once_in(2)) options.scale = mean(detached(buffers_[2 * width]));
  // A weight without a gradient now and then.
  const Tensor weight = once_in(3) ? detached(square_[width]) : square_[width];
  const LinearCrossEntropy y = linear_cross_entropy(rows, weight, labels, options);
  return y.loss + scale(cast(y.correct, DType::kFloat32), 0.5);
}

}  // namespace tidemark::testing

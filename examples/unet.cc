// A custom network trained in half of the memory that it needs: a U-Net (Ronneberger et al.
// 2015, arXiv:1505.04597) that finds circles and squares in noisy images.
//
//   $ unet
//   training takes 5.6 MiB; the budget is 2.8 MiB
//   step  20: loss 0.18
//   step  40: loss 0.08
//   step  60: loss 0.06
//   IoU on new images: circles 0.92, squares 0.91; the arena's peak was 2.8 MiB
//   loaded from unet.safetensors, without a budget: the same masks
//
// The last digits depend on the machine's kernels. `unet FILE` saves the weights there.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "models/checkpoint/weights.h"
#include "models/nn/conv_blocks.h"
#include "models/optim/optimizer.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "ops/pool/max_pool2d.h"
#include "ops/pool/upsample.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "runtime/core/atomic_file.h"
#include "runtime/session/dry_run.h"

using namespace tidemark;

constexpr int64_t kBatch = 8, kSize = 32, kClasses = 3;  // background, circle, square

struct Batch {
  std::vector<float> images = std::vector<float>(kBatch * kSize * kSize);
  std::vector<int64_t> masks = std::vector<int64_t>(kBatch * kSize * kSize);
};

// Draws a circle in each image, and a dimmer square in front of it, in noise as strong as both.
std::shared_ptr<const Batch> draw(uint32_t seed) {
  auto batch = std::make_shared<Batch>();
  std::mt19937 random(seed);
  const auto number = [&](int64_t low, int64_t high) { return low + random() % (high - low); };
  for (int64_t n = 0; n < kBatch; ++n) {
    const int64_t radius = number(5, 9), x = number(8, 24), y = number(8, 24);
    const int64_t half = number(5, 9), left = number(8, 24), top = number(8, 24);
    for (int64_t i = 0; i < kSize * kSize; ++i) {
      const int64_t row = i / kSize, column = i % kSize;
      const bool square = std::max(std::abs(row - top), std::abs(column - left)) < half;
      const bool circle = (row - y) * (row - y) + (column - x) * (column - x) < radius * radius;
      batch->masks[n * kSize * kSize + i] = square ? 2 : circle ? 1 : 0;
      const float noise = static_cast<float>(random() % 1000) / 1000;
      batch->images[n * kSize * kSize + i] = noise + (square ? 0.5F : circle ? 1.0F : 0.0F);
    }
  }
  return batch;
}

struct DoubleConv : Sequential {
  DoubleConv(int64_t in, int64_t out, ParameterInit& init) {
    add<ConvNorm>(ConvNormOptions{{.in = in, .out = out, .kernel = 3, .padding = 1}}, init);
    add<ConvNorm>(ConvNormOptions{{.in = out, .out = out, .kernel = 3, .padding = 1}}, init);
  }
};

struct UNet : Module {
  explicit UNet(ParameterInit& init)
      : enter(1, 8, init),
        down(8, 16, init),
        bottom(16, 32, init),
        up(32 + 16, 16, init),
        leave(16 + 8, 8, init),
        head({.in = 8, .out = kClasses, .bias = true}, init) {
    register_child("enter", enter);
    register_child("down", down);
    register_child("bottom", bottom);
    register_child("up", up);
    register_child("leave", leave);
    register_child("head", head);
  }
  // images (N, H, W, 1), H and W multiples of 4 -> logits (N H W, kClasses)
  Tensor forward(const Tensor& images) const {
    const Tensor a = enter.forward(images);
    const Tensor b = down.forward(max_pool2d(a, {}));
    const Tensor c = bottom.forward(max_pool2d(b, {}));
    const Tensor d = up.forward(concat({upsample(c, {2, 2}), b}, 3));
    return reshape(head.forward(leave.forward(concat({upsample(d, {2, 2}), a}, 3))),
                   {-1, kClasses});
  }
  DoubleConv enter, down, bottom, up, leave;
  Conv2d head;
};

Tensor images_of(const std::shared_ptr<const Batch>& batch) {
  const auto meta = TensorMeta::contiguous(DType::kFloat32, {kBatch, kSize, kSize, 1});
  return Session::current().upload(meta, Category::kData, batch->images.data(), batch,
                                   "images");
}

struct Training {
  ParameterInit init{/*seed=*/1};
  UNet net{init};
  std::unique_ptr<Optimizer> adam = make_adam(net.parameters(), {.lr = 0.01});

  float step(uint32_t seed) {
    const auto batch = draw(seed);
    const auto meta = TensorMeta::contiguous(DType::kInt64, {kBatch * kSize * kSize});
    const Tensor masks =
        Session::current().upload(meta, Category::kData, batch->masks.data(), batch, "masks");
    const Tensor loss = cross_entropy(net.forward(images_of(batch)), masks);
    backward(loss);
    adam->step();
    float value = 0;
    Session::current().download(loss, &value);
    return value;
  }
};

// The predicted class of each pixel of the test images.
std::vector<int64_t> masks_found(UNet& net, const std::shared_ptr<const Batch>& batch) {
  net.train(false);
  const NoGrad no_grad;
  std::vector<float> logits(batch->masks.size() * kClasses);
  Session::current().download(net.forward(images_of(batch)), logits.data());
  net.train();
  std::vector<int64_t> found;
  for (auto row = logits.begin(); row != logits.end(); row += kClasses) {
    found.push_back(std::max_element(row, row + kClasses) - row);
  }
  return found;
}

// Pixels of a class in both masks, as a share of those in either mask.
double intersection_over_union(const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                               int64_t of) {
  int64_t both = 0, either = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += a[i] == of && b[i] == of;
    either += a[i] == of || b[i] == of;
  }
  return static_cast<double>(both) / static_cast<double>(either);
}

int main(int argc, char** argv) try {
  const std::string file = argc > 1 ? argv[1] : "unet.safetensors";
  if (argc > 2 || file.starts_with("-")) {
    const bool asked = file == "--help" || file == "-h";
    std::fputs(
        "usage: unet [FILE]\n"
        "Trains a small U-Net and saves its weights to FILE [unet.safetensors].\n",
        asked ? stdout : stderr);
    return asked ? 0 : 2;
  }
  { const AtomicFile probe(file); }  // throws before training if it cannot be written
  const auto test = draw(1'000'000);
  std::vector<int64_t> found;
  {
    // One step of each kind. The program runs on the simulator first, to find half of its
    // memory.
    const Program program = [&]() -> std::vector<std::function<void()>> {
      const auto training = std::make_shared<Training>();
      return {[=] { training->step(0); }, [=] { training->step(1); },
              [=] { masks_found(training->net, test); }};
    };
    const SessionOptions options = with_budget(0.5, program, {.device = "cpu"});
    std::printf("training takes %s; the budget is %s\n",
                format_bytes(*options.unmanaged_peak).c_str(),
                format_bytes(*options.budget).c_str());
    Session session(options);
    Training training;
    for (uint32_t i = 1; i <= 60; ++i) {
      float loss = 0;
      session.step([&] { loss = training.step(i); });
      if (i % 20 == 0) std::printf("step %3u: loss %.2f\n", i, loss);
    }
    session.step([&] { found = masks_found(training.net, test); });
    std::printf("IoU on new images: circles %.2f, squares %.2f; the arena's peak was %s\n",
                intersection_over_union(found, test->masks, 1),
                intersection_over_union(found, test->masks, 2),
                format_bytes(session.peak_reserved()).c_str());
    save_weights(file, training.net);
  }
  Session session({.device = "cpu"});
  ParameterInit init(/*seed=*/2);
  UNet net(init);
  SafetensorsFile weights(file);
  load_into(net, weights);
  const bool same = masks_found(net, test) == found;
  std::printf("loaded from %s, without a budget: %s\n", file.c_str(),
              same ? "the same masks" : "DIFFERENT MASKS");
  return same ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "unet: %s\n", error.what());
  return 2;
}

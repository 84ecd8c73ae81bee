// First steps: tensors, gradients, an update, and a budget.
//
//   $ first_steps
//   w = 2.0000, loss = 0.0000 after 40 steps
//   the arena's peak was 6.0 KiB of a budget of 6.0 KiB
//
// `first_steps cuda` does the same on a GPU.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "models/nn/parameter_init.h"
#include "models/optim/optimizer.h"
#include "ops/autograd/autograd.h"
#include "ops/elementwise/elementwise.h"
#include "ops/reduce/reduce.h"
#include "ops/register.h"
#include "runtime/session/session.h"

using namespace tidemark;
using namespace tidemark::literals;

int main(int argc, char** argv) try {
  const std::string device = argc > 1 ? argv[1] : "cpu";
  if (argc > 2 || device.starts_with("-")) {
    const bool asked = device == "--help" || device == "-h";
    std::fputs(
        "usage: first_steps [DEVICE]\n"
        "Trains one weight under a budget on DEVICE: cpu (the default) or cuda.\n",
        asked ? stdout : stderr);
    return asked ? 0 : 2;
  }
  register_cuda_kernels();  // needs no GPU, and does nothing in a build without CUDA
  // Find w in y = w x, where y is 2 x. All tensors live in one arena of 6 KiB; what does not
  // fit is released and brought back.
  const auto values = std::make_shared<std::vector<float>>(256, 0.5F);
  const TensorMeta meta = TensorMeta::contiguous(DType::kFloat32, {256});
  float loss = 0, found = 0;
  // README.md shows the lines from here
  Session session({.device = device, .budget = 6_KiB, .host_limit = 64_KiB});
  const Tensor x = session.upload(meta, Category::kData, values->data(), values);
  const Tensor y = add(x, x);
  Tensor w = upload_constant({1}, 0, Category::kParameter, "w");
  require_grad(w);
  const std::unique_ptr<Optimizer> sgd = make_sgd({{"w", w}}, {.lr = 0.8});
  for (int i = 0; i < 40; ++i) {
    session.step([&] {
      const Tensor error = sub(mul(w, x), y);
      const Tensor result = mean(mul(error, error));
      backward(result);
      sgd->step();
      session.download(result, &loss);
    });
  }
  // to here.
  session.download(w, &found);
  std::printf("w = %.4f, loss = %.4f after 40 steps\n", found, loss);
  std::printf("the arena's peak was %s of a budget of 6.0 KiB\n",
              format_bytes(session.peak_reserved()).c_str());
} catch (const std::exception& error) {
  std::fprintf(stderr, "first_steps: %s\n", error.what());
  return 2;
}

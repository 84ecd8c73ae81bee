// What the kernels of some layers read, write and compute, counted by running their PTX. Prints
// JSON, which bench/cuda_kernels.py sets beside the limits of GPUs.
//
//   kernel_counts > counts.json
//
// Bytes are those that threads ask for; caches may have them. Shapes are as in networks, but
// for fewer rows: counts are proportional to these.
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ops/attention/attention.h"
#include "ops/attention/rotary.h"
#include "ops/elementwise/elementwise.h"
#include "ops/embedding/embedding.h"
#include "ops/loss/loss.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/layer_norm.h"
#include "ops/norm/rms_norm.h"
#include "ops/optimizer/optimizer.h"
#include "ops/pool/max_pool2d.h"
#include "ops/random/random.h"
#include "tests/ops/ptx/guarded_kernels.h"
#include "tests/support/ptx/block.h"
#include "tests/support/ptx/library.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using Call = std::function<void()>;

struct Case {
  std::string name;
  bool tf32 = false;
  // Makes the inputs. What it returns is counted.
  std::function<Call()> make{};
};

Tensor leaf(const Shape& shape, uint32_t seed, DType dtype) {
  Tensor x = random_tensor(shape, seed);
  if (dtype != DType::kFloat32) x = cast(x, dtype);
  require_grad(x);
  return x;
}

// A layer of one tensor, and its gradient.
template <class F>
void add_layer(std::vector<Case>& cases, const std::string& name, const Shape& shape,
               DType dtype, const F& layer) {
  const std::string full = name + " " + shape.to_string() + " " + std::string(to_string(dtype));
  cases.push_back({full, false, [=] {
                     const Tensor x = leaf(shape, 1, dtype);
                     return Call([=] { layer(x); });
                   }});
  cases.push_back({full + ", gradient", false, [=] {
                     const Tensor y = layer(leaf(shape, 1, dtype));
                     const Tensor g =
                         y.shape().rank() == 0 ? Tensor() : leaf(y.shape(), 2, y.dtype());
                     return Call([=] { g.defined() ? backward(y, g) : backward(y); });
                   }});
}

void add_attention(std::vector<Case>& cases, int64_t depth, DType dtype, bool tf32,
                   bool causal) {
  const Shape shape{1, 256, 1, depth};
  const auto operands = [=] {
    return std::vector<Tensor>{leaf(shape, 1, dtype), leaf(shape, 2, dtype),
                               leaf(shape, 3, dtype)};
  };
  const auto attend = [=](const std::vector<Tensor>& x) {
    return scaled_dot_product_attention(
        x[0], x[1], x[2],
        {.causal = causal, .implementation = AttentionImplementation::kMemoryEfficient});
  };
  std::string name = "attention " + shape.to_string() + " " + std::string(to_string(dtype));
  if (tf32) name += " as TF32";
  if (causal) name += ", causal";
  cases.push_back({name, tf32, [=] {
                     const auto x = operands();
                     return Call([=] { attend(x); });
                   }});
  cases.push_back({name + ", gradient", tf32, [=] {
                     const Tensor y = attend(operands());
                     const Tensor g = leaf(shape, 4, dtype);
                     return Call([=] { backward(y, g); });
                   }});
}

std::vector<Case> cases() {
  std::vector<Case> all;
  const DType narrow = DType::kBFloat16, wide = DType::kFloat32;
  for (const bool causal : {false, true}) add_attention(all, 64, narrow, false, causal);
  add_attention(all, 64, wide, true, false);
  add_attention(all, 128, narrow, false, false);
  for (const bool tf32 : {false, true}) add_attention(all, 128, wide, tf32, false);
  for (const DType dtype : {wide, narrow}) {
    add_layer(all, "relu", {64, 1024}, dtype, [](const Tensor& x) { return relu(x); });
    add_layer(all, "gelu", {64, 1024}, dtype, [](const Tensor& x) { return gelu(x); });
    add_layer(all, "dropout", {64, 1024}, dtype,
              [](const Tensor& x) { return dropout(x, 0.1); });
    add_layer(all, "softmax", {16, 2048}, dtype, [](const Tensor& x) { return softmax(x); });
    add_layer(all, "layer_norm", {32, 1024}, dtype, [](const Tensor& x) {
      return layer_norm(x, random_leaf({1024}, 5), random_leaf({1024}, 6));
    });
    add_layer(all, "rms_norm", {32, 1024}, dtype,
              [](const Tensor& x) { return rms_norm(x, random_leaf({1024}, 5)); });
    add_layer(all, "batch_norm", {4, 16, 16, 64}, dtype, [](const Tensor& x) {
      return batch_norm(x, random_leaf({64}, 5), random_leaf({64}, 6)).y;
    });
    add_layer(all, "max_pool2d", {1, 32, 32, 64}, dtype, [](const Tensor& x) {
      return max_pool2d(x, {.window = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
    });
    add_layer(all, "cross_entropy", {8, 8192}, dtype, [](const Tensor& x) {
      return cross_entropy(x, from<int64_t>({1, 2, 3, 4, 5, 6, 7, 8}, {8}));
    });
    add_layer(all, "embedding", {512, 256}, dtype, [](const Tensor& table) {
      std::vector<int64_t> ids(256);
      for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * i % 512);
      return embedding(table, from(ids, {256}));
    });
  }
  all.push_back({"adam (65536) float32", false, [] {
                   const Shape shape{65536};
                   const std::vector<AdamUpdate> updates{{.param = random_tensor(shape, 1),
                                                          .grad = random_tensor(shape, 2),
                                                          .m = random_tensor(shape, 3),
                                                          .v = random_tensor(shape, 4, 0, 1)}};
                   return Call([updates] {
                     const NoGrad no_grad;
                     adam_step_(updates, {}, 1);
                   });
                 }});
  all.push_back({"adam (65536) bfloat16 with a master", false, [] {
                   const Shape shape{65536};
                   const Tensor param = cast(random_tensor(shape, 1), DType::kBFloat16);
                   const std::vector<AdamUpdate> updates{{.param = param,
                                                          .grad = param,
                                                          .m = random_tensor(shape, 3),
                                                          .v = random_tensor(shape, 4, 0, 1),
                                                          .master = random_tensor(shape, 5)}};
                   return Call([updates] {
                     const NoGrad no_grad;
                     adam_step_(updates, {}, 2);
                   });
                 }});
  for (const bool master : {false, true}) {
    const std::string type = master ? "bfloat16 with a master" : "float32";
    all.push_back({"sgd with momentum (65536) " + type, false, [master] {
                     const Shape shape{65536};
                     const Tensor values = random_tensor(shape, 1);
                     SgdUpdate update{values, random_tensor(shape, 2), random_tensor(shape, 3)};
                     if (master) {
                       update.master = values;
                       update.param = update.grad = cast(values, DType::kBFloat16);
                     }
                     return Call([update] {
                       const NoGrad no_grad;
                       sgd_step_({&update, 1}, {.lr = 0.1, .momentum = 0.9}, false);
                     });
                   }});
  }
  return all;
}

void settle() { Session::current().device().synchronize_all(); }

int run() {
  ptx::Library& library = ptx::Library::shipped();
  register_guarded_kernels();
  nlohmann::json rows = nlohmann::json::array();
  for (const Case& c : cases()) {
    SessionOptions options;
    options.threads = 1;
    options.tf32 = c.tf32;
    options.budget = Bytes(256 << 20);
    Session session(options);
    const Call call = c.make();
    settle();
    library.take_counts();
    call();
    settle();
    for (const auto& [kernel, counts] : library.take_counts()) {
      rows.push_back({{"call", c.name},
                      {"kernel", ptx::readable(kernel)},
                      {"read", counts.read},
                      {"written", counts.written},
                      {"flops", counts.flops},
                      {"tensor_flops", counts.tensor_flops}});
    }
  }
  std::cout << rows.dump(1) << "\n";
  return 0;
}

}  // namespace
}  // namespace tidemark::testing

int main() {
  setenv("TIDEMARK_TEST_OWN_PRODUCTS", "1", 1);  // gemm_on_host.cc
  return tidemark::testing::run();
}

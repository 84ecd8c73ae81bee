#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "ops/dnnl/primitive.h"
#include "ops/kernels/map_cpu.h"
#include "ops/kernels/parallel_for.h"
#include "ops/linear/matmul.h"
#include "ops/loss/linear_cross_entropy_kernels.h"
#include "ops/loss/rows_cpu.h"

namespace tidemark::loss {
namespace {

using Problem = LinearCrossEntropyProblem;

class Product {
 public:
  Product(const TensorMeta& a, const TensorMeta& b, const TensorMeta& y,
          const MatmulAttrs& attrs, int threads, bool add = false)
      : attrs_(attrs) {
    const std::array inputs{a, b};
    const std::array outputs{y};
    kernel_ = prepare_product_cpu({inputs, outputs, attrs_, threads}, add);
  }
  Bytes workspace() const { return kernel_.workspace; }
  void run(const KernelArgs& call, std::byte* a, std::byte* b, std::byte* y) const {
    const std::array inputs{a, b};
    const std::array outputs{y};
    kernel_.run({{}, {}, inputs, outputs, call.workspace, attrs_, call.scalars, nullptr});
  }

 private:
  Attrs attrs_;
  PreparedKernel kernel_;
};

// The products of a chunk.
struct Products {
  Products(const Problem& p, int64_t chunk_rows)
      : rows(chunk_rows),
        logits(p.rows_of_x(rows), p.weight, p.logits(rows), MatmulAttrs{0, 1}, p.threads) {
    if (p.gx) {
      gx.emplace(p.logits_grad(rows), p.weight,
                 TensorMeta::contiguous(p.x.dtype, p.rows_of_x(rows).shape), MatmulAttrs{},
                 p.threads);
    }
    if (p.gweight) {
      gweight.emplace(p.logits_grad(rows), p.rows_of_x(rows),
                      TensorMeta::contiguous(DType::kFloat32, p.weight.shape),
                      MatmulAttrs{1, 0}, p.threads, /*add=*/true);
    }
  }
  Bytes workspace() const {
    return std::max({logits.workspace(), gx ? gx->workspace() : Bytes(0),
                     gweight ? gweight->workspace() : Bytes(0)});
  }

  int64_t rows;
  Product logits;
  std::optional<Product> gx, gweight;
};

struct RowResult {
  double log_prob;
  int64_t right;  // 0 or 1
};

// Whether the label's score is the first of the row's largest; NaN counts as the largest.
bool is_largest(const float* x, int64_t classes, int64_t label) {
  const float mine = x[label];
  const bool nan = std::isnan(mine);
  for (int64_t c = 0; c < label; ++c) {
    if (nan ? std::isnan(x[c]) : !(x[c] < mine)) return false;
  }
  for (int64_t c = label + 1; c < classes && !nan; ++c) {
    if (!(x[c] <= mine)) return false;
  }
  return true;
}

// d, from the chunk's logits. `d` may be `logits`; without gradients it is not written.
template <class T>
void process_rows(const Problem& p, int64_t rows, const int64_t* labels, float factor,
                  float* logits, RowResult* results, T* d) {
  const Batch& batch = p.batch;
  parallel_tasks(rows, kExpElements * batch.classes, [&](int64_t row) {
    const int64_t label = labels[row * batch.label_step];
    const float* scores = logits + row * batch.classes;
    RowSums sums{};
    if (batch.valid(label) && !batch.ignored(label)) {
      sums = row_loops<float>().sums(scores, batch.classes);
      results[row] = {log_prob(scores[label], sums), is_largest(scores, batch.classes, label)};
    } else {
      results[row] = {};
    }
    if (!p.grads()) return;
    write_gradient(batch, row_loops<T>().gradient_of_float, scores, label, sums, factor,
                   d + row * batch.classes);
  });
}

template <class T>
PreparedKernel prepare(const Problem& p) {
  const ProductsOfChunks<Products> chunks(p);
  const LinearCrossEntropyWorkspace at(p, chunks.workspace(), Bytes(sizeof(RowResult)));
  return {at.total, [=](const KernelArgs& args) {
            const int64_t* labels = args.in<int64_t>(2);
            const double count = counted(p.batch, labels);
            const float factor = p.scaled ? *args.in<float>(3) : 1 / static_cast<float>(count);
            auto* results = reinterpret_cast<RowResult*>(args.workspace + at.rows);
            std::byte* logits = args.workspace + at.logits;
            std::byte* d = args.workspace + at.logits_grad;
            std::byte* weight = args.inputs[1];
            if (p.gweight) {
              float* gweight = args.out<float>(p.gweight_output());
              parallel_chunks(p.weight.shape.elements(), kSerialElements,
                              [&](int64_t begin, int64_t end) {
                                std::fill(gweight + begin, gweight + end, 0.0F);
                              });
            }
            for (int64_t first = 0; first < p.batch.rows; first += p.chunk) {
              const Products& products = chunks.at(first);
              const int64_t start = first * p.x.shape[1] * static_cast<int64_t>(sizeof(T));
              std::byte* x = args.inputs[0] + start;
              products.logits.run(args, x, weight, logits);
              process_rows(p, products.rows, labels + first * p.batch.label_step, factor,
                           reinterpret_cast<float*>(logits), results + first,
                           reinterpret_cast<T*>(d));
              if (p.gx) {
                products.gx->run(args, d, weight, args.outputs[Problem::kGx] + start);
              }
              if (p.gweight) {
                products.gweight->run(args, d, x, args.outputs[p.gweight_output()]);
              }
            }
            const double sum = summed_loss(
                p.batch, labels, [&](int64_t row, int64_t) { return results[row].log_prob; });
            *args.out<float>(0) = static_cast<float>(p.scaled ? sum * factor : sum / count);
            int64_t right = 0;
            for (int64_t row = 0; row < p.batch.rows; ++row) right += results[row].right;
            *args.out<int64_t>(1) = right;
          }};
}

struct Times {
  float operator()(float g, float x) const { return g * x; }
};

}  // namespace

PreparedKernel prepare_linear_cross_entropy_cpu(const OpQuery& query) {
  onednn::require_kernels("linear_cross_entropy", query.inputs[0].dtype);
  return visit_float(query.inputs[0].dtype,
                     [&]<class T>(TypeTag<T>) { return prepare<T>(Problem(query)); });
}

PreparedKernel prepare_linear_cross_entropy_grad_cpu(const OpQuery& query) {
  return visit_float(query.inputs[1].dtype, [&]<class In>(TypeTag<In>) {
    return visit_float(query.outputs[0].dtype, [&]<class Out>(TypeTag<Out>) {
      return map_cpu<Times, Out, float, In>(query);
    });
  });
}

}  // namespace tidemark::loss

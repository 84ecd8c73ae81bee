#include <memory>

#include "ops/dnnl/primitive.h"
#include "ops/linear/matmul.h"

namespace tidemark {
namespace {

dnnl::memory::desc matrix(const Shape& shape, bool transposed) {
  using Tag = dnnl::memory::format_tag;
  const int64_t rows = shape[transposed ? 1 : 0], columns = shape[transposed ? 0 : 1];
  return {{rows, columns}, dnnl::memory::data_type::f32, transposed ? Tag::ba : Tag::ab};
}

// oneDNN reads a wide second matrix, as it lies, at half of its speed for some widths. Blocking
// it first costs nothing beside many rows of the first; its copy is workspace, and so has a
// limit.
bool worth_blocking(const OpQuery& query) {
  constexpr int64_t kRows = 128;
  constexpr int64_t kColumns = 2048;
  constexpr Bytes kMost{32 << 20};
  const Shape& y = query.outputs[0].shape;
  return !query.attr<MatmulAttrs>().transpose_b && y[0] >= kRows && y[1] > kColumns &&
         query.inputs[1].bytes() <= kMost;
}

struct Product {
  onednn::WorkspaceLayout layout;
  std::unique_ptr<onednn::Primitive> primitive;
  std::unique_ptr<onednn::Primitive> reorder;  // null: b is used as it lies
  size_t b_at = 0;
};

}  // namespace

PreparedKernel prepare_matmul_cpu(const OpQuery& query) {
  const onednn::UseThreads use(query.threads);
  const auto& attrs = query.attr<MatmulAttrs>();
  const bool bias = query.inputs.size() == 3;
  const auto a = matrix(query.inputs[0].shape, attrs.transpose_a != 0);
  const auto plain = matrix(query.inputs[1].shape, attrs.transpose_b != 0);
  const auto b = worth_blocking(query) ? onednn::any_layout(plain) : plain;
  const auto y = matrix(query.outputs[0].shape, false);
  const auto desc =
      bias ? dnnl::matmul::desc(a, b, matrix({1, query.inputs[2].shape[0]}, false), y)
           : dnnl::matmul::desc(a, b, y);
  const dnnl::matmul::primitive_desc description(desc, onednn::attributes(), onednn::engine());

  auto product = std::make_shared<Product>();
  if (bias) {
    product->primitive = std::make_unique<onednn::Primitive>(
        description,
        std::initializer_list<int>{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS},
        query.threads, product->layout);
  } else {
    product->primitive = std::make_unique<onednn::Primitive>(
        description, std::initializer_list<int>{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
        query.threads, product->layout);
  }
  const auto fast = product->primitive->argument(DNNL_ARG_WEIGHTS);
  product->reorder = onednn::make_reorder(plain, fast, query.threads, product->layout);
  if (product->reorder) {
    product->b_at = product->layout.add(Bytes(static_cast<int64_t>(fast.get_size())));
  }
  return {product->layout.total(), [product, bias](const KernelArgs& args) {
            std::byte* second = args.inputs[1];
            if (product->reorder) {
              second = args.workspace + product->b_at;
              product->reorder->run(args.workspace, {args.inputs[1], second});
            }
            std::byte* bias_or_null = bias ? args.inputs[2] : nullptr;
            product->primitive->run(args.workspace,
                                    {args.inputs[0], second, args.outputs[0], bias_or_null});
          }};
}

}  // namespace tidemark

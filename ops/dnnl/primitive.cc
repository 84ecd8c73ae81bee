#include "ops/dnnl/primitive.h"

#include <string>
#include <string_view>
#include <unordered_map>

#include "runtime/core/errors.h"
#include "runtime/core/log.h"
#include "runtime/device/pages.h"

namespace tidemark::onednn {
namespace {

// A mask: a processor that has fewer instruction sets keeps all that it has.
constexpr auto kBelowTiles = dnnl::cpu_isa::avx512_core_bf16;

// oneDNN does not check that it got the memory that it asks for, some hundreds of KiB for a
// primitive, and writes to address 0.
void require_memory() {
  constexpr Bytes kEnough{4 << 20};
  map_pages(kEnough, " for a kernel of oneDNN");
}

}  // namespace

void hide_broken_tiles(const CpuFacts& facts) {
  const std::string_view reason = why_no_tiles(facts);
  if (reason.empty()) return;
  log().warn("oneDNN will not use AMX: {}", reason);
  if (dnnl::set_max_cpu_isa(kBelowTiles) == dnnl::status::success) return;
  throw UsageError("oneDNN is in use before Tidemark and would use AMX, but " +
                   std::string(reason) + ": set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16");
}

const dnnl::engine& engine() {
  static const auto& instance = *[] {
    hide_broken_tiles(cpu_facts());
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return instance;
}

const dnnl::primitive_attr& attributes() {
  require_memory();
  static const auto& instance = *[] {
    auto* attributes = new dnnl::primitive_attr;
    attributes->set_scratchpad_mode(dnnl::scratchpad_mode::user);
    return attributes;
  }();
  return instance;
}

const dnnl::primitive_attr& adding_attributes() {
  require_memory();
  static const auto& instance = *[] {
    auto* attributes = new dnnl::primitive_attr;
    attributes->set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops sum;
    sum.append_sum();
    attributes->set_post_ops(sum);
    return attributes;
  }();
  return instance;
}

dnnl::memory::data_type data_type(DType dtype) {
  return dtype == DType::kBFloat16 ? dnnl::memory::data_type::bf16
                                   : dnnl::memory::data_type::f32;
}

void require_kernels(const char* op, DType dtype) {
  if (dtype != DType::kBFloat16) return;
  static const bool available = [] {
    engine();
    const int isa = static_cast<int>(dnnl::get_effective_cpu_isa());
    const int least = static_cast<int>(dnnl::cpu_isa::avx512_core);
    return (isa & least) == least;
  }();
  if (available) return;
  throw UsageError("[" + std::string(op) +
                   "] has no kernel for bfloat16 on this processor, which has no AVX-512");
}

dnnl::memory::desc nhwc(const TensorMeta& images) {
  using Tag = dnnl::memory::format_tag;
  const Shape& shape = images.shape;
  dnnl::memory::dims dims{shape[0], shape.back()};
  dims.insert(dims.end(), shape.begin() + 1, shape.end() - 1);
  return {dims, data_type(images.dtype), shape.rank() == 5 ? Tag::ndhwc : Tag::nhwc};
}

dnnl::memory::desc vector(int64_t extent) {
  return {{extent}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::a};
}

dnnl::memory::desc any_layout(const dnnl::memory::desc& desc) {
  return {desc.dims(), desc.data_type(), dnnl::memory::format_tag::any};
}

Primitive::Primitive(const dnnl::primitive_desc_base& description,
                     std::initializer_list<int> arguments, const UseThreads& use,
                     WorkspaceLayout& layout)
    : description_(description),
      threads_(use.threads()),
      scratchpad_(description.scratchpad_desc()) {
  scratchpad_at_ = layout.add(Bytes(static_cast<int64_t>(scratchpad_.get_size())));
  for (int which : arguments) arguments_.emplace_back(which, argument(which));
}

dnnl::memory::desc Primitive::argument(int which) const {
  return description_.query_md(dnnl::query::exec_arg_md, which);
}

void Primitive::run(std::byte* workspace, std::initializer_list<void*> pointers) {
  const UseThreads use(threads_);
  use.require_team();
  std::call_once(once_, [&] {
    require_memory();
    primitive_ = dnnl::primitive(description_.get());
  });
  thread_local dnnl::stream stream(engine());
  std::unordered_map<int, dnnl::memory> memory;
  auto pointer = pointers.begin();
  for (const auto& [which, desc] : arguments_) {
    memory.emplace(which, dnnl::memory(desc, engine(), *pointer++));
  }
  if (scratchpad_.get_size() > 0) {
    memory.emplace(DNNL_ARG_SCRATCHPAD,
                   dnnl::memory(scratchpad_, engine(), workspace + scratchpad_at_));
  }
  primitive_.execute(stream, memory);
  stream.wait();
}

std::unique_ptr<Primitive> make_reorder(const dnnl::memory::desc& from,
                                        const dnnl::memory::desc& to, const UseThreads& use,
                                        WorkspaceLayout& layout) {
  if (from == to) return nullptr;
  const dnnl::reorder::primitive_desc description(engine(), from, engine(), to, attributes());
  return std::make_unique<Primitive>(
      description, std::initializer_list<int>{DNNL_ARG_FROM, DNNL_ARG_TO}, use, layout);
}

WeightedPrimitive::WeightedPrimitive(const dnnl::primitive_desc_base& description,
                                     std::initializer_list<int> arguments,
                                     const dnnl::memory::desc& plain, int weight_argument,
                                     int direction, const UseThreads& use)
    : primitive(std::make_unique<Primitive>(description, arguments, use, layout)) {
  const dnnl::memory::desc fast = primitive->argument(weight_argument);
  reorder = direction > 0 ? make_reorder(plain, fast, use, layout)
                          : make_reorder(fast, plain, use, layout);
  if (reorder) weight_at = layout.add(Bytes(static_cast<int64_t>(fast.get_size())));
}

PreparedKernel weighted_kernel(const dnnl::primitive_desc_base& description,
                               std::initializer_list<int> arguments,
                               const dnnl::memory::desc& plain, const UseThreads& use) {
  const bool bias = arguments.size() == 4;
  const auto kernel = std::make_shared<WeightedPrimitive>(description, arguments, plain,
                                                          DNNL_ARG_WEIGHTS, 1, use);
  return {kernel->layout.total(), [kernel, bias](const KernelArgs& args) {
            std::byte* weight = args.inputs[1];
            if (kernel->reorder) {
              weight = args.workspace + kernel->weight_at;
              kernel->reorder->run(args.workspace, {args.inputs[1], weight});
            }
            std::byte* bias_or_null = bias ? args.inputs[2] : nullptr;
            kernel->primitive->run(args.workspace,
                                   {args.inputs[0], weight, args.outputs[0], bias_or_null});
          }};
}

}  // namespace tidemark::onednn

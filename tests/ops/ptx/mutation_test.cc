// The checks are alive: kernels that ship, each broken in one place when its PTX is loaded, are
// caught, and by the check that is meant to. As they ship they pass.
#include <gtest/gtest.h>

#include <optional>
#include <regex>
#include <sstream>
#include <string>

#include "ops/attention/kernels.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/loss/loss.h"
#include "ops/norm/layer_norm.h"
#include "ops/optimizer/optimizer.h"
#include "ops/random/kernels.h"
#include "ops/random/random.h"
#include "tests/support/ptx/library.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

using ptx::Check;
using ptx::Library;

void attend(DType dtype) {
  const Array x = Array::random({1, 70, 2, 16}, 1);
  const attention::AttentionAttrs attrs{
      static_cast<int64_t>(AttentionImplementation::kMemoryEfficient), 0, 0, 0.25, 0};
  const KernelOptions options{.dtypes = {dtype, dtype, dtype}, .tf32 = true};
  run_kernel_with(options, kAttention, {x, x, x}, attrs);
}
void attend_float() { attend(DType::kFloat32); }
void attend_bfloat16() { attend(DType::kBFloat16); }
void soften() { run_kernel(kSoftmax, {Array::random({3, 2000}, 1)}); }
void normalise() {
  const Array x = Array::random({3, 2000}, 1), gamma = Array::random({2000}, 2);
  run_kernel(kLayerNorm, {x, gamma, gamma}, LayerNormAttrs{1e-5});
}
void add() { run_kernel(kAdd, {Array::random({303}, 1), Array::random({303}, 2)}); }
void draw() {
  const KernelOptions options{.scalars = {0, 0, 1}};
  run_kernel_with(options, kNormal, {}, random::RandomAttrs{ShapeAttrs(Shape{300}), 7});
}
// Along a column, so that each element's place is computed by divisions.
void add_columns() {
  run_kernel(kAdd, {Array::random({20, 15}, 1), Array::random({20, 1}, 2)});
}
void add_vectors() { run_kernel(kAdd, {Array::random({512}, 1), Array::random({512}, 2)}); }

struct Mutation {
  const char* what;
  const char* file;    // of ops/, without its ending
  const char* kernel;  // part of the mangled name
  const char* line;    // part of an instruction,
  int number;          // which of those that have it, from 0
  const char* from;    // a regular expression, within that line
  const char* to;
  Check caught;
  void (*run)();
};

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest calls it
void PrintTo(const Mutation& mutation, std::ostream* out) { *out << mutation.what; }

const char* const kInOneLaneLess =
    ".reg .pred %q; .reg .b32 %t; mov.u32 %t, %tid.x; setp.ne.u32 %q, %t, 7; @%q $&";

const Mutation kMutations[] = {
    {"no barrier after the queries' load", "attention_tensor_cores_cuda", "forward_kernelIf",
     "bar.sync", 0, "bar.sync", "// $&", Check::kRace, attend_float},
    {"no barrier before the first keys", "attention_tensor_cores_cuda", "forward_kernelIf",
     "bar.sync", 1, "bar.sync", "// $&", Check::kRace, attend_float},
    {"no barrier after the keys' load", "attention_tensor_cores_cuda", "forward_kernelIf",
     "bar.sync", 2, "bar.sync", "// $&", Check::kRace, attend_float},
    {"no barrier before the next keys", "attention_tensor_cores_cuda", "forward_kernelIf",
     "bar.sync", 3, "bar.sync", "// $&", Check::kRace, attend_float},
    {"no wait for the queries' copies", "attention_tensor_cores_cuda",
     "forward_kernelINS_8BFloat16", "cp.async.wait_all", 0, "cp.async", "// $&", Check::kCopy,
     attend_bfloat16},
    {"no barrier after the keys' load", "attention_tensor_cores_cuda",
     "forward_kernelINS_8BFloat16", "bar.sync", 2, "bar.sync", "// $&", Check::kRace,
     attend_bfloat16},
    {"mma without one lane", "attention_tensor_cores_cuda", "forward_kernelIf", "mma.sync", 5,
     "mma.sync", kInOneLaneLess, Check::kDiverged, attend_float},
    {"ldmatrix without one lane", "attention_tensor_cores_cuda", "forward_kernelINS_8BFloat16",
     "ldmatrix", 2, "ldmatrix", kInOneLaneLess, Check::kDiverged, attend_bfloat16},
    {"ldmatrix from half a row", "attention_tensor_cores_cuda", "forward_kernelINS_8BFloat16",
     "ldmatrix", 0, "\\]", "+8]", Check::kMisaligned, attend_bfloat16},
    {"a tile's row too far", "attention_tensor_cores_cuda", "forward_kernelIf", "st.shared.v4",
     1, "\\]", "+32768]", Check::kSharedBounds, attend_float},
    {"a tile's row is not copied", "attention_tensor_cores_cuda", "forward_kernelINS_8BFloat16",
     "cp.async.cg", 1, "cp.async", "// $&", Check::kUnwrittenShared, attend_bfloat16},
    {"no barrier before the maxima are read", "softmax_cuda", "14softmax_kernelILi256ELb0E",
     "bar.sync", 1, "bar.sync", "// $&", Check::kRace, soften},
    {"no barrier before the result is read", "softmax_cuda", "14softmax_kernelILi256ELb0E",
     "bar.sync", 2, "bar.sync", "// $&", Check::kRace, soften},
    {"a barrier that the first warp skips", "softmax_cuda", "14softmax_kernelILi256ELb0E",
     "bar.sync", 2, "bar.sync",
     ".reg .pred %q; .reg .b32 %t; mov.u32 %t, %tid.x; setp.gt.u32 %q, %t, 31; @%q $&",
     Check::kRace, soften},
    {"a warp that returns before the barrier", "softmax_cuda", "14softmax_kernelILi256ELb0E",
     "bar.sync", 2, "bar.sync",
     ".reg .pred %q; .reg .b32 %t; mov.u32 %t, %tid.x; setp.gt.u32 %q, %t, 223; @%q exit; $&",
     Check::kBarrier, soften},
    {"a lane that is not in the shuffle's mask", "softmax_cuda", "14softmax_kernelILi256ELb0E",
     "shfl.sync", 0, ", %r\\d+;", ", 0x7FFFFFFF;", Check::kDiverged, soften},
    {"a row read one element too far", "softmax_cuda", "14softmax_kernelILi256ELb0E",
     "ld.global.f32", 3, "\\]", "+4]", Check::kGlobalBounds, soften},
    {"the input is written", "softmax_cuda", "14softmax_kernelILi256ELb0E", "ld.param.u64", 2,
     "param_2", "param_1", Check::kReadOnly, soften},
    {"a sum of one warp is not stored", "layer_norm_cuda", "forward", "st.shared", 0,
     "st.shared", "// $&", Check::kUnwrittenShared, normalise},
    {"a vector that ends one element behind the last", "arithmetic_cuda",
     "apply_kernelILi4ELb1ENS0_6AssignINS_3Add", ", 4;", 0, ", 4;", ", 3;",
     Check::kGlobalBounds, add},
    {"a vector at half its width", "arithmetic_cuda", "Add", "ld.global.v4.f32", 0, "\\]",
     "+8]", Check::kMisaligned, add_vectors},
    {"a parameter that is larger than what is passed", "arithmetic_cuda", "Add", "param_1[1]",
     0, "\\[1\\]", "[64]", Check::kParameters, add},
    {"a parameter read beyond its end", "arithmetic_cuda", "Add", "ld.param", 0, "\\]",
     "+8192]", Check::kParamBounds, add},
    {"a block of more threads than the kernel states", "softmax_cuda",
     "14softmax_kernelILi256ELb0E", ".maxntid", 0, "256", "128", Check::kLaunchShape, soften},
    {"a loop that does not end", "softmax_cuda", "14softmax_kernelILi256ELb0E", "setp.lt.s64",
     0, "lt(.s64\\s+%p\\d+).*;", "eq$1, 0, 0;", Check::kEndless, soften},
    {"a local variable's neighbour", "random_cuda", "normal_kernel", "st.local", 0, "\\]",
     "+4096]", Check::kLocalBounds, draw},
    {"an extent of zero", "arithmetic_cuda",
     "apply_kernelILi1ELb0ENS0_6AssignINS_3AddEEEJNS_6WritesIf", "div.u32", 0, ", %r\\d+;",
     ", 0;", Check::kDivision, add_columns},
    {"a kernel that stops itself", "softmax_cuda", "14softmax_kernelILi256ELb0E", "bar.sync", 0,
     "bar.sync", "trap; $&", Check::kTrap, soften},
    {"a register that is never set", "softmax_cuda", "14softmax_kernelILi256ELb0E",
     "cvt.u64.u32", 0, "cvt", "// $&", Check::kUndefined, soften},
};

// The file of the library whose name is `stem`.
std::string path_of(const std::string& stem) {
  for (const auto& [kernel, file] : Library::shipped().kernels()) {
    if (file.find("/" + stem + ".ptx") != std::string::npos) return file;
  }
  throw UsageError("no PTX of " + stem);
}

// `text` with the mutation in every kernel that it names; nothing if no line is the one.
std::optional<std::string> mutate(const std::string& text, const Mutation& mutation) {
  std::istringstream in(text);
  std::ostringstream out;
  bool inside = false, found = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.find(".entry") != std::string::npos) {
      inside = line.find(mutation.kernel) != std::string::npos;
      number = 0;
    }
    if (inside && line.find(mutation.line) != std::string::npos &&
        number++ == mutation.number) {
      const std::string mutated =
          std::regex_replace(line, std::regex(mutation.from), mutation.to,
                             std::regex_constants::format_first_only);
      found = found || mutated != line;
      line = mutated;
    }
    out << line << "\n";
  }
  if (!found) return std::nullopt;
  return out.str();
}

// The first violation of a run; empty if there is none.
std::string violation_of(void (*run)()) {
  std::string violation;
  Library::shipped().report_to([&](const std::string& what) {
    if (violation.empty()) violation = what;
  });
  try {
    run();
  } catch (const DeviceError&) {
    // The launch has failed; why is in `violation`.
  }
  Library::shipped().report_to(nullptr);
  return violation;
}

class Mutations : public ::testing::TestWithParam<Mutation> {};

TEST_P(Mutations, AreCaught) {
  const Mutation& mutation = GetParam();
  const std::string file = path_of(mutation.file);
  EXPECT_EQ(violation_of(mutation.run), "") << "as it ships";
  const auto mutated = mutate(Library::shipped().text(file), mutation);
  if (!mutated) GTEST_SKIP() << "this nvcc makes no such line";
  Library::shipped().replace(file, *mutated);
  const std::string violation = violation_of(mutation.run);
  Library::shipped().restore(file);
  EXPECT_EQ(violation.substr(0, violation.find(']') + 1),
            "[" + std::string(name_of(mutation.caught)) + "]")
      << mutation.what << "\n"
      << violation;
}

INSTANTIATE_TEST_SUITE_P(OfShippedKernels, Mutations, ::testing::ValuesIn(kMutations),
                         [](const auto& test) { return std::to_string(test.index); });

}  // namespace
}  // namespace tidemark::testing

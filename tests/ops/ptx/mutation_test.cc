// The checks are alive: kernels that ship, each broken in one place when its PTX is loaded, are
// caught, and by the check that is meant to. As they ship they pass.
#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "ops/attention/kernels.h"
#include "ops/elementwise/arithmetic.h"
#include "ops/loss/loss.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/layer_norm.h"
#include "ops/optimizer/optimizer.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/move_cuda.h"
#include "tests/support/ptx/library.h"
#include "tests/support/run_kernel.h"

namespace tidemark::testing {
namespace {

using ptx::Check;
using ptx::Library;

void attend(DType dtype, int64_t depth = 16) {
  const Array x = Array::random({1, 70, 2, depth}, 1);
  const attention::AttentionAttrs attrs{
      static_cast<int64_t>(AttentionImplementation::kMemoryEfficient), 0, 0, 0.25, 0};
  const KernelOptions options{.dtypes = {dtype, dtype, dtype}, .tf32 = true};
  run_kernel_with(options, kAttention, {x, x, x}, attrs);
}
void attend_float() { attend(DType::kFloat32); }
void attend_bfloat16() { attend(DType::kBFloat16); }
void attend_deep() { attend(DType::kBFloat16, 128); }
void attend_long() { attend(DType::kFloat32, 128); }
void soften() { run_kernel(kSoftmax, {Array::random({3, 2000}, 1)}); }
void normalise() {
  const Array x = Array::random({3, 2000}, 1), gamma = Array::random({2000}, 2);
  run_kernel(kLayerNorm, {x, gamma, gamma}, LayerNormAttrs{1e-5});
}
void add() { run_kernel(kAdd, {Array::random({303}, 1), Array::random({303}, 2)}); }
void attend_backwards() {
  const Array x = Array::random({1, 70, 2, 16}, 1), log_sum = Array::random({1, 2, 70}, 2);
  const attention::AttentionAttrs attrs{
      static_cast<int64_t>(AttentionImplementation::kMemoryEfficient), 0, 0, 0.25, 0};
  run_kernel_with({.tf32 = true}, kAttentionGrad, {x, x, x, x, x, log_sum}, attrs);
}
void attend_with_dropout() {
  const Array x = Array::random({1, 9, 2, 16}, 1);
  run_kernel(
      kAttention, {x, x, x},
      attention::AttentionAttrs{static_cast<int64_t>(AttentionImplementation::kMaterialised), 0,
                                0.5, 0.25, 7});
}
// The last thread has four elements instead of eight.
void normalise_and_add() {
  const Array x = Array::random({5, 4}, 1), channels = Array::random({4}, 2, 1, 2);
  run_kernel(kBatchNorm, {x, channels, channels, channels, channels, x},
             BatchNormAttrs{1e-5, static_cast<int64_t>(Activation::kReLU)});
}
// A block of 256 elements, and thus one scale for each state.
void update_in_8_bits() {
  const Array x = Array::random({256}, 1), scale = Array::random({1}, 2);
  const DType f = DType::kFloat32, u = DType::kUInt8;
  run_kernel_with({.dtypes = {f, f, u, u, f, f}, .scalars = {0.1, 0.9, 0.99, 1e-8, 0, 2}},
                  kAdam8bitStep, {x, x, x, x, scale, scale});
}
// By less than a tile, of which there are three.
void move_upwards() {
  constexpr int64_t kBytes = 3 * (16 << 10), kFar = 1600;
  std::vector<uint32_t> memory((kBytes + kFar) / 4), words(kMoveProgressBytes / 4);
  MoveProgress progress{words.data()};
  ptx::GlobalMemory global;
  global.add(memory.data(), kBytes + kFar, true, "memory");
  global.add(words.data(), static_cast<int64_t>(kMoveProgressBytes), true, "progress");
  global.watch_races();
  const ptx::GlobalScope scope(global);
  move_on_gpu(memory.data() + kFar / 4, memory.data(), kBytes, progress, nullptr);
}
// Along a column, so that each element's place is computed by divisions.
void add_columns() {
  run_kernel(kAdd, {Array::random({20, 15}, 1), Array::random({20, 1}, 2)});
}
void add_vectors() { run_kernel(kAdd, {Array::random({512}, 1), Array::random({512}, 2)}); }

struct Target {
  const char* file;    // of ops/, without its ending
  const char* kernel;  // part of the mangled name
  void (*run)();
};
const Target kAttendFloat{"attention_tensor_cores_cuda", "forward_kernelIfLi64ELb0E",
                          attend_float};
const Target kAttendBFloat16{"attention_tensor_cores_cuda",
                             "forward_kernelINS_8BFloat16ELi64ELb0E", attend_bfloat16};
const Target kAttendDeep{"attention_tensor_cores_cuda",
                         "forward_kernelINS_8BFloat16ELi128ELb0E", attend_deep};
const Target kAttendLong{"attention_tensor_cores_cuda", "forward_kernelIfLi128ELb0E",
                         attend_long};
const Target kSoften{"softmax_cuda", "14softmax_kernelILi256ELb0E", soften};
const Target kNormalise{"layer_norm_cuda", "forward", normalise};
const Target kAttendBackwards{"attention_tensor_cores_grad_cuda", "key_grad_kernelIfLi64ELb0E",
                              attend_backwards};
const Target kDrop{"attention_materialised_cuda", "drop_kernel", attend_with_dropout};
const Target kNormaliseAndAdd{"batch_norm_cuda", "residual_kernelILi4EfE", normalise_and_add};
const Target kUpdateIn8Bits{"compact_cuda", "compact_stepINS_11CompactKindINS_8AdamRuleEfLb0",
                            update_in_8_bits};
const Target kMove{"move_cuda", "move_words", move_upwards};
const Target kAddAny{"arithmetic_cuda", "Add", add};
const Target kAddVectors{"arithmetic_cuda", "Add", add_vectors};
const Target kAddLastVector{"arithmetic_cuda", "apply_kernelILi4ELb1ENS0_6AssignINS_3Add", add};
const Target kAddColumns{
    "arithmetic_cuda", "apply_kernelILi1ELb0ENS0_6AssignINS_3AddEEEJNS_6WritesIf", add_columns};

struct Mutation {
  const char* what;
  Target target;
  const char* line;  // part of an instruction,
  int number;        // which of those that have it, from 0
  const char* from;  // a regular expression, within that line
  const char* to;
  Check caught;
};

// Without the kernel's barrier `number`.
Mutation no_barrier(const char* what, const Target& target, int number,
                    Check caught = Check::kRace) {
  return {what, target, "bar.sync", number, "bar.sync", "// $&", caught};
}

// NOLINTNEXTLINE(readability-identifier-naming): GoogleTest calls it
void PrintTo(const Mutation& mutation, std::ostream* out) {
  *out << mutation.what << ", in " << mutation.target.file << ": " << name_of(mutation.caught);
}

const char* const kInOneLaneLess =
    ".reg .pred %q; .reg .b32 %t; mov.u32 %t, %tid.x; setp.ne.u32 %q, %t, 7; @%q $&";

const Mutation kMutations[] = {
    no_barrier("no barrier after the queries' load", kAttendFloat, 0),
    no_barrier("no barrier before the first keys", kAttendFloat, 1),
    no_barrier("no barrier after the keys' load", kAttendFloat, 2),
    no_barrier("no barrier before the next keys", kAttendFloat, 3),
    {"no wait for the queries' copies", kAttendBFloat16, "cp.async.wait_all", 0, "cp.async",
     "// $&", Check::kCopy},
    no_barrier("no barrier after the keys' load", kAttendBFloat16, 2),
    no_barrier("no barrier before the next keys of deep rows", kAttendDeep, 3),
    {"a deep row is not copied", kAttendDeep, "cp.async.cg", 1, "cp.async", "// $&",
     Check::kUnwrittenShared},
    no_barrier("no barrier after the load of 16 long rows", kAttendLong, 2),
    {"more shared memory than a launch adds", kAttendLong, "st.shared.v4", 0, "\\]", "+67584]",
     Check::kSharedBounds},
    {"mma without one lane", kAttendFloat, "mma.sync", 5, "mma.sync", kInOneLaneLess,
     Check::kDiverged},
    {"ldmatrix without one lane", kAttendBFloat16, "ldmatrix", 2, "ldmatrix", kInOneLaneLess,
     Check::kDiverged},
    {"ldmatrix from half a row", kAttendBFloat16, "ldmatrix", 0, "\\]", "+8]",
     Check::kMisaligned},
    {"a tile's row too far", kAttendFloat, "st.shared.v4", 1, "\\]", "+32768]",
     Check::kSharedBounds},
    {"a tile's row is not copied", kAttendBFloat16, "cp.async.cg", 1, "cp.async", "// $&",
     Check::kUnwrittenShared},
    no_barrier("no barrier before the maxima are read", kSoften, 1),
    no_barrier("no barrier before the result is read", kSoften, 2),
    {"a barrier that the first warp skips", kSoften, "bar.sync", 2, "bar.sync",
     ".reg .pred %q; .reg .b32 %t; mov.u32 %t, %tid.x; setp.gt.u32 %q, %t, 31; @%q $&",
     Check::kRace},
    {"a warp that returns before the barrier", kSoften, "bar.sync", 2, "bar.sync",
     ".reg .pred %q; .reg .b32 %t; mov.u32 %t, %tid.x; setp.gt.u32 %q, %t, 223; @%q exit; $&",
     Check::kBarrier},
    {"a lane that is not in the shuffle's mask", kSoften, "shfl.sync", 0, ", %r\\d+;",
     ", 0x7FFFFFFF;", Check::kDiverged},
    {"a row read one element too far", kSoften, "ld.global.f32", 3, "\\]", "+4]",
     Check::kGlobalBounds},
    {"the input is written", kSoften, "ld.param.u64", 2, "param_2", "param_1",
     Check::kReadOnly},
    {"a sum of one warp is not stored", kNormalise, "st.shared", 0, "st.shared", "// $&",
     Check::kUnwrittenShared},
    {"a vector that ends one element behind the last", kAddLastVector, ", 4;", 0, ", 4;",
     ", 3;", Check::kGlobalBounds},
    {"a vector at half its width", kAddVectors, "ld.global.v4.f32", 0, "\\]", "+8]",
     Check::kMisaligned},
    {"a parameter that is larger than what is passed", kAddAny, "param_1[1]", 0, "\\[1\\]",
     "[64]", Check::kParameters},
    {"a parameter read beyond its end", kAddAny, "ld.param", 0, "\\]", "+8192]",
     Check::kParamBounds},
    {"a block of more threads than the kernel states", kSoften, ".maxntid", 0, "256", "128",
     Check::kLaunchShape},
    {"a loop that does not end", kSoften, "setp.lt.s64", 0, "lt(.s64\\s+%p\\d+).*;",
     "eq$1, 0, 0;", Check::kEndless},
    no_barrier("no barrier after the tile's number", kMove, 0),
    no_barrier("a tile's mark before all of it is read", kMove, 1, Check::kGlobalRace),
    no_barrier("no barrier after the wait for others' marks", kMove, 2, Check::kGlobalRace),
    {"no fence before a tile's mark", kMove, "membar.gl", 1, "membar", "// $&",
     Check::kGlobalRace},
    {"no fence after the others' marks", kMove, "membar.gl", 2, "membar", "// $&",
     Check::kGlobalRace},
    no_barrier("no barrier before the next queries", kAttendBackwards, 3),
    {"a vector behind the last elements", kNormaliseAndAdd, "setp.ge.s64", 2, "ge", "gt",
     Check::kGlobalBounds},
    {"the scale of the next block's means", kUpdateIn8Bits, "st.global.u32", 0, "\\]", "+4]",
     Check::kGlobalBounds},
    {"a local variable's neighbour", kDrop, "st.local", 0, "\\]", "+4096]",
     Check::kLocalBounds},
    {"an extent of zero", kAddColumns, "div.u32", 0, ", %r\\d+;", ", 0;", Check::kDivision},
    {"a kernel that stops itself", kSoften, "bar.sync", 0, "bar.sync", "trap; $&",
     Check::kTrap},
    {"a register that is never set", kSoften, "cvt.u64.u32", 0, "cvt", "// $&",
     Check::kUndefined},
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
      inside = line.find(mutation.target.kernel) != std::string::npos;
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
  const std::string file = path_of(mutation.target.file);
  EXPECT_EQ(violation_of(mutation.target.run), "") << "as it ships";
  const auto mutated = mutate(Library::shipped().text(file), mutation);
  ASSERT_TRUE(mutated) << "this nvcc makes no such line: choose another for " << mutation.what;
  Library::shipped().replace(file, *mutated);
  const std::string violation = violation_of(mutation.target.run);
  Library::shipped().restore(file);
  EXPECT_EQ(violation.substr(0, violation.find(']') + 1),
            "[" + std::string(name_of(mutation.caught)) + "]")
      << mutation.what << "\n"
      << violation;
}

TEST(EveryCheck, HasAMutation) {
  for (int c = 0; c <= static_cast<int>(Check::kEndless); ++c) {
    const auto check = static_cast<Check>(c);
    EXPECT_TRUE(std::any_of(std::begin(kMutations), std::end(kMutations),
                            [&](const Mutation& mutation) { return mutation.caught == check; }))
        << name_of(check);
  }
}

INSTANTIATE_TEST_SUITE_P(OfShippedKernels, Mutations, ::testing::ValuesIn(kMutations),
                         [](const auto& test) { return std::to_string(test.index); });

}  // namespace
}  // namespace tidemark::testing

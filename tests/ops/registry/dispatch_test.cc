#include "ops/registry/dispatch.h"

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ops/elementwise/elementwise.h"
#include "ops/view/kernels.h"
#include "ops/view/view.h"
#include "runtime/residency/residency.h"
#include "runtime/session/call_listener.h"
#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

using DispatchTest = SessionTest;

TEST(OpDefTest, WrittenInputsAreThoseOfTheBitsOrOfEachGroup) {
  const OpDef call{.name = "call", .infer = nullptr, .cost = nullptr, .written_inputs = 0b101};
  const OpDef groups{.name = "groups",
                     .infer = nullptr,
                     .cost = nullptr,
                     .written_inputs = 0b101,
                     .input_group = 3};
  for (size_t i = 0; i < 200; ++i) {
    EXPECT_EQ(call.writes(i), i == 0 || i == 2) << i;
    EXPECT_EQ(groups.writes(i), i % 3 != 1) << i;
  }
}

// Inputs beyond the bits of OpDef::written_inputs.
TEST_F(DispatchTest, ManyInputsAreReadAndNotWritten) {
  const NoGrad no_grad;
  std::vector<Tensor> parts;
  std::vector<float> expected;
  for (int i = 0; i < 70; ++i) {
    parts.push_back(relu(from<float>({static_cast<float>(i)}, {1})));
    expected.push_back(static_cast<float>(i));
  }
  const Tensor whole = dispatch(kConcat, parts, view::ConcatAttrs{0}).front();
  EXPECT_EQ(to_vector(whole), expected);
  for (const Tensor& part : parts) EXPECT_EQ(part.storage()->version(), 0u);
  // It can be computed again, as nothing was written.
  EXPECT_TRUE(Session::current().residency().view().may_evict(*whole.storage()));
}

TEST_F(DispatchTest, AnInputThatIsGivenTwiceIsOneAndWrittenIfEitherIs) {
  const Tensor a = from<float>({1, 2, 3, 4}, {4});
  size_t inputs = 0;
  bool written = false;
  std::optional<CallListener> listener(std::in_place, Session::current(),
                                       [&](const Recipe& call) {
                                         inputs = call.inputs.size();
                                         written = call.inputs.front().written;
                                       });
  add_(a, narrow(a, 0, 0, 4));
  listener.reset();
  EXPECT_EQ(inputs, 1u);
  EXPECT_TRUE(written);
  EXPECT_EQ(a.storage()->version(), 1u);
  EXPECT_EQ(to_vector(a), (std::vector<float>{2, 4, 6, 8}));
}

// Only what is as large as the output, and what no operand sees in another order.
TEST_F(DispatchTest, SaysWhatTheOutputMayOverwrite) {
  std::vector<uint32_t> bits;
  std::optional<CallListener> listener(
      std::in_place, Session::current(),
      [&](const Recipe& call) { bits.push_back(call.may_overwrite); });
  const Tensor a = random_tensor({4, 4}, 1), b = random_tensor({4, 4}, 2);
  const Tensor row = random_tensor({4}, 3), wide = random_tensor({5, 4}, 4);
  const NoGrad no_grad;
  relu(a);
  add(a, b);
  add(row, b);
  add(a, a);
  add(a, transpose(a, 0, 1));
  add(narrow(wide, 0, 1, 4), b);
  relu(reshape(a, {16}));
  where(gt(a, b), a, b);
  add_(a, b);
  listener.reset();
  EXPECT_EQ(bits, (std::vector<uint32_t>{0b1, 0b11, 0b10, 0b1, 0, 0b10, 0b1, 0, 0b110, 0}));
}

int listed = 0;
std::vector<std::string> list_algorithms(const OpQuery&) {
  ++listed;
  return {"other"};
}
void do_nothing(const KernelArgs&) {}
const OpDef kListed = define_op(
    "listed",
    [](const OpQuery& query) {
      return std::vector<TensorMeta>(query.inputs.begin(), query.inputs.end());
    },
    [](const OpQuery&) { return OpCost{}; }, simple_kernel<do_nothing>, nullptr,
    list_algorithms);

// Listing may take long. Once for the process is enough, and for calls outside the table, none.
TEST(AlgorithmsOfACall, AreListedOnceAndOnlyIfNeeded) {
  AlgorithmOffers offers;
  const auto run = [&](const AlgorithmTable& table, int64_t size, bool collect = false) {
    Session session({.device = "cpu",
                     .threads = 1,
                     .algorithms = std::make_shared<const AlgorithmTable>(table),
                     .budget = Bytes(1 << 20)});
    if (collect) session.collect_offers(&offers);
    dispatch1(kListed, {random_tensor({size}, 1)});
  };
  listed = 0;
  run({}, 4);
  EXPECT_EQ(listed, 0);
  run({}, 4, /*collect=*/true);
  EXPECT_EQ(listed, 1);
  ASSERT_EQ(offers.size(), 1U);
  const uint64_t call = offers.begin()->first;
  for (int i = 0; i < 2; ++i) run({{call, "other"}}, 4);
  run({}, 4, /*collect=*/true);
  run({{call, "other"}}, 5);
  EXPECT_EQ(listed, 1);
}

}  // namespace
}  // namespace tidemark::testing

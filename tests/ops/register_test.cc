#include "ops/register.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tidemark {
namespace {

TEST(RegisterTest, NamesAreUniqueAndFound) {
  std::set<std::string> names;
  for (const OpDef* op : all_operators()) {
    ASSERT_NE(op, nullptr);
    EXPECT_TRUE(names.insert(op->name).second) << op->name;
    EXPECT_EQ(find_operator(op->name), op);
  }
  EXPECT_EQ(find_operator("no such operator"), nullptr);
  EXPECT_EQ(find_operator(""), nullptr);
}

TEST(RegisterTest, EveryOperatorIsComplete) {
  for (const OpDef* op : all_operators()) {
    EXPECT_NE(op->infer, nullptr) << op->name;
    EXPECT_NE(op->cost, nullptr) << op->name;
    EXPECT_NE(op->prepare[static_cast<size_t>(Backend::kCpu)], nullptr) << op->name;
  }
}

TEST(RegisterTest, OperatorsThatWriteInPlaceSayItInTheirName) {
  for (const OpDef* op : all_operators()) {
    const std::string name = op->name;
    EXPECT_EQ(op->written_inputs != 0, name.ends_with('_')) << name;
  }
}

// Seven inputs that fit nothing: not each other, and of a type without kernels.
TEST(RegisterTest, NonsenseIsRefusedByName) {
  const Attrs attrs = [] {
    struct Zeros {
      int64_t zeros[14] = {};
    };
    return Attrs(Zeros());
  }();
  std::vector<TensorMeta> inputs(7, TensorMeta::contiguous(DType::kFloat16, {2, 3}));
  inputs[3] = TensorMeta::contiguous(DType::kFloat16, {7});
  for (const OpDef* op : all_operators()) {
    try {
      op->infer({inputs, {}, attrs});
      ADD_FAILURE() << op->name << " takes them";
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("[" + std::string(op->name) + "]", 0), 0u)
          << error.what();
    }
  }
}

}  // namespace
}  // namespace tidemark

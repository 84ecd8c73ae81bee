#include "runtime/tensor/tensor.h"

#include <gtest/gtest.h>

#include "runtime/tensor/slot_table.h"

namespace tidemark {
namespace {

// Records what it is told, and deletes objects that nobody refers to.
class Listener final : public StorageOwner {
 public:
  void on_unused(Storage&) override { ++unused; }
  void on_unreferenced(Storage& storage) override {
    ++unreferenced;
    delete &storage;
  }
  int unused = 0;
  int unreferenced = 0;
};

TEST(Storage, UsersAndReferencesAreCountedApart) {
  Listener owner;
  auto storage = make_intrusive<Storage>(&owner, 1, 0, Bytes(100), Category::kData, "test");
  EXPECT_EQ(storage->bytes(), Bytes(100));
  EXPECT_EQ(storage->size(), Bytes(512));
  EXPECT_EQ(storage->residence(), Residence::kEmpty);
  {
    const StorageUse first(storage);
    const StorageUse second = first;
    EXPECT_EQ(storage->users(), 2);
    StorageUse third = second;
    third = first;
    EXPECT_EQ(storage->users(), 3);
    const StorageUse moved = std::move(third);
    EXPECT_EQ(storage->users(), 3);
    EXPECT_EQ(owner.unused, 0);
  }
  EXPECT_EQ(storage->users(), 0);
  EXPECT_EQ(owner.unused, 1);
  EXPECT_EQ(owner.unreferenced, 0);
  storage = {};
  EXPECT_EQ(owner.unreferenced, 1);
}

TEST(Storage, AssigningAUseToItselfKeepsIt) {
  Listener owner;
  StorageUse use(make_intrusive<Storage>(&owner, 1, 0, Bytes(1), Category::kData, "test"));
  const StorageUse& same = use;
  use = same;
  EXPECT_EQ(use->users(), 1);
  EXPECT_EQ(owner.unused, 0);
}

TEST(Storage, WithoutAnOwnerItDeletesItself) {
  StorageUse use(make_intrusive<Storage>(nullptr, 1, 0, Bytes(1), Category::kData, "test"));
  use = {};  // sanitizers would see a leak
  EXPECT_FALSE(use);
}

TEST(TensorMeta, Contiguity) {
  TensorMeta meta = TensorMeta::contiguous(DType::kFloat32, Shape{2, 3, 4});
  EXPECT_TRUE(meta.is_contiguous());
  EXPECT_EQ(meta.bytes(), Bytes(96));
  meta.offset = 5;
  EXPECT_TRUE(meta.is_contiguous()) << "whatever the offset";
  meta.strides = Shape{12, 1, 3};
  EXPECT_FALSE(meta.is_contiguous());
  meta = TensorMeta::contiguous(DType::kFloat32, Shape{2, 1, 4});
  meta.strides = Shape{4, 99, 1};
  EXPECT_TRUE(meta.is_contiguous()) << "the stride of a single one does not matter";
  meta.strides = Shape{0, 4, 1};
  EXPECT_FALSE(meta.is_contiguous()) << "broadcast";
}

TEST(Tensor, ViewsShareTheStorageAndCountAsUsers) {
  Listener owner;
  Tensor tensor(
      StorageUse(make_intrusive<Storage>(&owner, 1, 0, Bytes(96), Category::kData, "test")),
      TensorMeta::contiguous(DType::kFloat32, Shape{2, 3, 4}));
  EXPECT_FALSE(Tensor().defined());
  Tensor view = tensor.view(TensorMeta::contiguous(DType::kFloat32, Shape{24}));
  EXPECT_EQ(view.storage().get(), tensor.storage().get());
  EXPECT_EQ(tensor.storage()->users(), 2);
  EXPECT_EQ(view.elements(), 24);
  EXPECT_EQ(tensor.extent(1), 3);
  EXPECT_FALSE(view.autograd());
  tensor = {};
  EXPECT_EQ(view.storage()->users(), 1);
}

TEST(SlotTable, AnotherStorageInASlotIsNew) {
  const auto storage = [](uint32_t id, uint32_t slot) {
    return make_intrusive<Storage>(nullptr, id, slot, Bytes(1), Category::kData, "test");
  };
  const auto first = storage(1, 3), second = storage(2, 3), third = storage(3, 0);
  SlotTable<int> table;
  EXPECT_EQ(table.find(*first), nullptr);
  table[*first] = 10;
  EXPECT_EQ(table.find(*third), nullptr) << "an empty slot is nobody's";
  table[*third] = 30;
  EXPECT_EQ(*table.find(*first), 10);
  EXPECT_EQ(table.find(*second), nullptr);
  EXPECT_EQ(table[*second], 0);
  EXPECT_EQ(table.find(*first), nullptr) << "its slot is another's";
  EXPECT_EQ(table[*third], 30);
}

}  // namespace
}  // namespace tidemark

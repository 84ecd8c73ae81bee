// Which storages are alive, and which of them are in use.
#include "runtime/residency/storages.h"

#include "runtime/residency/residency.h"
#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

TEST(Storages, InUseIsWhatHasUsersAndBytes) {
  Scene scene;
  Storages& storages = scene.residency().storages();
  Handle a = scene.data(1);
  const Handle b = scene.data(2);
  const Handle c = scene.call({b});
  const Handle unwritten(storages.create(units(8), Category::kData, "test"));
  ASSERT_TRUE(scene.evict(c));
  EXPECT_EQ(storages.bytes_in_use(), units(4)) << "what is evicted counts";
  a = {};
  EXPECT_EQ(storages.bytes_in_use(), units(3));
  const auto in_use = storages.in_use();
  ASSERT_EQ(in_use.size(), 2u);
  EXPECT_EQ(in_use[0].get(), c.get()) << "newest first";
  EXPECT_EQ(in_use[1].get(), b.get());
}

// Tables about storages (slot_table.h) stay small, however many storages come and go.
TEST(Storages, SlotsOfWhatIsGoneAreGivenAgain) {
  Scene scene;
  const Handle kept = scene.data();
  const uint32_t next = scene.data()->slot();  // destroyed at once
  for (int i = 0; i < 3; ++i) {
    const Handle later = scene.data();
    EXPECT_EQ(later->slot(), next);
    EXPECT_NE(later->id(), kept->id());
  }
}

}  // namespace
}  // namespace tidemark::testing

// The events that listeners receive, in order.
#include "runtime/residency/storage_event.h"

#include <map>

#include "runtime/residency/residency.h"
#include "tests/runtime/residency/scene.h"

namespace tidemark::testing {
namespace {

using Kind = StorageEvent::Kind;

// "block a, used a, call done": storages by letter, in order of appearance.
class Listener final : public StorageListener {
 public:
  explicit Listener(Residency& residency) : residency_(residency) {
    residency.storage_events().listen(*this);
  }
  ~Listener() override { residency_.storage_events().ignore(*this); }

  void on_event(const StorageEvent& event) noexcept override {
    static const std::map<Kind, std::string> kNames{{Kind::kPlaced, "placed"},
                                                    {Kind::kUploaded, "uploaded"},
                                                    {Kind::kReloaded, "reloaded"},
                                                    {Kind::kPrefetched, "prefetched"},
                                                    {Kind::kUsed, "used"},
                                                    {Kind::kEvicted, "evicted"},
                                                    {Kind::kOffloaded, "offloaded"},
                                                    {Kind::kDropped, "dropped"},
                                                    {Kind::kCopiedOut, "copied out"},
                                                    {Kind::kCopyDropped, "copy given up"},
                                                    {Kind::kLeft, "left"},
                                                    {Kind::kMoved, "moved"},
                                                    {Kind::kUnused, "unused"},
                                                    {Kind::kDied, "died"},
                                                    {Kind::kGone, "gone"},
                                                    {Kind::kCall, "call"},
                                                    {Kind::kRun, "run"},
                                                    {Kind::kIssued, "issued"},
                                                    {Kind::kCallDone, "call done"}};
    text_ += (text_.empty() ? "" : ", ") + kNames.at(event.kind);
    if (!event.storage) return;
    const auto [letter, fresh] =
        letters_.try_emplace(event.storage->id(), static_cast<char>('a' + letters_.size()));
    text_ += std::string(" ") + letter->second;
  }
  std::string take() { return std::exchange(text_, {}); }

 private:
  Residency& residency_;
  std::map<uint32_t, char> letters_;
  std::string text_;
};

TEST(StorageEvents, AreToldAsTheyHappen) {
  Scene scene({.arena = 16, .host = 16});
  Listener told(scene.residency());
  const Handle a = scene.data();
  EXPECT_EQ(told.take(), "uploaded a");
  const Handle b = scene.call({a});
  EXPECT_EQ(told.take(), "call, run, placed b, used a, used b, issued, call done");
  ASSERT_TRUE(scene.evict(b));
  EXPECT_EQ(told.take(), "evicted b, left b");
  {
    const Handle c = scene.call({b});
    EXPECT_EQ(told.take(),
              "call, run, placed b, used a, used b, run, placed c, used b, used c, issued, "
              "call done");
  }
  EXPECT_EQ(told.take(), "unused c, left c, gone c");
  ASSERT_TRUE(scene.residency().transfers().copy_out(*b, Reason::kEarlyStart));
  EXPECT_EQ(told.take(), "copied out b");
  ASSERT_TRUE(scene.offload(b));
  EXPECT_EQ(told.take(), "dropped b, left b") << "it has a copy";
  ASSERT_TRUE(scene.residency().transfers().prefetch(*b));
  EXPECT_EQ(told.take(), "prefetched b");
  ASSERT_TRUE(scene.offload(b));
  told.take();
  ASSERT_TRUE(scene.residency().transfers().drop_copy(*b, Reason::kPlan));
  EXPECT_EQ(told.take(), "copy given up b");
  scene.hash(b);
  EXPECT_EQ(told.take(), "run, placed b, used a, used b, used b")
      << "computed again, then read";
}

//   a . b c    2 units are needed: b and c move down
TEST(StorageEvents, TellOfMoves) {
  Scene scene({.arena = 5, .host = 16, .evict = false});
  Listener told(scene.residency());
  Handle a = scene.data(), gap = scene.data(), b = scene.data(), c = scene.data();
  gap = {};
  told.take();
  const Handle d = scene.data(2);
  EXPECT_EQ(told.take(), "moved c, moved d, uploaded e");
  EXPECT_EQ(scene.picture(), "abcdd");
}

TEST(StorageEvents, GoToAllThatListen) {
  Scene scene;
  Listener first(scene.residency());
  {
    Listener second(scene.residency());
    scene.data();
    EXPECT_EQ(second.take(), first.take());
  }
  scene.data();
  EXPECT_EQ(first.take(), "uploaded b, unused b, left b, gone b");
}

// Outputs of the stopped call are empty; its inputs are unchanged.
TEST(StorageEvents, AStoppedStepEndsWhereItWantsABlock) {
  Scene scene;
  const Handle a = scene.data();
  const uint64_t hash = scene.hash(a);
  EXPECT_THROW(scene.session().step([&] {
    const Handle b = scene.call({a});
    scene.residency().effort().stop();
    scene.call({b});
  }),
               Effort::Stopped);
  EXPECT_EQ(scene.hash(a), hash);
  EXPECT_EQ(scene.session().step([&] { scene.call({a}); }).operators, 1) << "the next goes on";
}

}  // namespace
}  // namespace tidemark::testing

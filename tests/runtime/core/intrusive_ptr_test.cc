#include "runtime/core/intrusive_ptr.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <utility>

namespace tidemark {
namespace {

// Reports its death; the subclass shows that the right destructor runs.
class Node : public RefCounted {
 public:
  explicit Node(int* deaths, int number = 0) : value(number), deaths_(deaths) {}
  ~Node() override { ++*deaths_; }
  int value;
  IntrusivePtr<Node> next;

 private:
  int* deaths_;
};

TEST(IntrusivePtr, LastHandleDeletes) {
  int deaths = 0;
  {
    const IntrusivePtr<Node> a = make_intrusive<Node>(&deaths, 7);
    EXPECT_EQ(a->ref_count(), 1);
    {
      const IntrusivePtr<Node> b = a;
      EXPECT_EQ(a->ref_count(), 2);
      EXPECT_EQ((*b).value, 7);
      EXPECT_TRUE(a == b);
    }
    EXPECT_EQ(a->ref_count(), 1);
    EXPECT_EQ(deaths, 0);
  }
  EXPECT_EQ(deaths, 1);
}

TEST(IntrusivePtr, MoveKeepsTheCountAndEmptiesTheSource) {
  int deaths = 0;
  IntrusivePtr<Node> a = make_intrusive<Node>(&deaths);
  const Node* address = a.get();
  IntrusivePtr<Node> b = std::move(a);
  EXPECT_FALSE(a);  // NOLINT(bugprone-use-after-move): empty is what is promised
  EXPECT_EQ(b.get(), address);
  EXPECT_EQ(b->ref_count(), 1);
  static_assert(std::is_nothrow_move_constructible_v<IntrusivePtr<Node>>);
  static_assert(sizeof(IntrusivePtr<Node>) == sizeof(void*));
}

TEST(IntrusivePtr, AssignmentReleasesTheOldObjectOnce) {
  int first = 0;
  int second = 0;
  IntrusivePtr<Node> a = make_intrusive<Node>(&first);
  IntrusivePtr<Node> b = make_intrusive<Node>(&second);
  a = b;
  EXPECT_EQ(first, 1);
  EXPECT_EQ(b->ref_count(), 2);
  a = std::move(b);
  EXPECT_EQ(a->ref_count(), 1);
  EXPECT_EQ(second, 0);
  a = nullptr;
  EXPECT_EQ(second, 1);
}

TEST(IntrusivePtr, SelfAssignmentIsHarmless) {
  int deaths = 0;
  IntrusivePtr<Node> a = make_intrusive<Node>(&deaths);
  const IntrusivePtr<Node>& same = a;
  a = same;
  EXPECT_EQ(deaths, 0);
  EXPECT_EQ(a->ref_count(), 1);
}

// The last release of a handle frees the object that holds the assigned-from handle.
TEST(IntrusivePtr, AssigningAnOwnedSuccessorIsSafe) {
  int deaths = 0;
  IntrusivePtr<Node> head = make_intrusive<Node>(&deaths, 1);
  head->next = make_intrusive<Node>(&deaths, 2);
  head = head->next;
  EXPECT_EQ(deaths, 1);
  EXPECT_EQ(head->value, 2);
}

TEST(IntrusivePtr, NullIsFalseAndCopies) {
  const IntrusivePtr<Node> none;
  const IntrusivePtr<Node> copy = none;
  EXPECT_FALSE(copy);
  EXPECT_EQ(copy.get(), nullptr);
  EXPECT_TRUE(none == copy);
}

TEST(IntrusivePtr, RawPointerCanBeAdoptedTwice) {
  int deaths = 0;
  {
    const IntrusivePtr<Node> a = make_intrusive<Node>(&deaths);
    const IntrusivePtr<Node> b(a.get());
    EXPECT_EQ(a->ref_count(), 2);
  }
  EXPECT_EQ(deaths, 1);
}

}  // namespace
}  // namespace tidemark

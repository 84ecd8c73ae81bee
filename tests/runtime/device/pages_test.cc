#include "runtime/device/pages.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

namespace tidemark {
namespace {

constexpr int64_t kPages = 8;

int64_t taken(std::byte* begin) {
  std::vector<unsigned char> pages(kPages);
  EXPECT_EQ(mincore(begin, static_cast<size_t>(kPages * page_size().count()), pages.data()), 0);
  return std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; });
}

TEST(Pages, AreTakenOnceTouchedAndKeepWhatTheyHold) {
  const Bytes size = page_size() * kPages;
  const auto memory = map_pages(size);
  std::byte& written = memory.get()[page_size().count() * 3 + 1];
  written = std::byte{7};
  touch_pages(memory.get(), size, /*stop=*/false);
  EXPECT_EQ(taken(memory.get()), kPages);
  EXPECT_EQ(written, std::byte{7});
  EXPECT_EQ(std::count(memory.get(), memory.get() + size.count(), std::byte{0}),
            size.count() - 1);
}

TEST(Pages, AreNotTakenOnceStopped) {
  const Bytes size = page_size() * kPages;
  const auto memory = map_pages(size);
  touch_pages(memory.get(), size, /*stop=*/true);
  EXPECT_EQ(taken(memory.get()), 0);
}

}  // namespace
}  // namespace tidemark

#include "runtime/device/pages.h"

#include <gtest/gtest.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
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

// The flags of the mapping that begins at `begin`, such as " rd wr mr hg".
std::string flags_of(const std::byte* begin) {
  std::ifstream maps("/proc/self/smaps");
  std::ostringstream first;
  first << std::hex << reinterpret_cast<uintptr_t>(begin) << "-";
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find('-') < line.find(' ')) here = line.starts_with(first.str());
    if (here && line.starts_with("VmFlags:")) return line.substr(8);
  }
  return "";
}

TEST(Pages, MayBeHugeAndOfANode) {
  constexpr int64_t kHuge = 2 << 20;
  const Bytes size(2 * kHuge + 5 * page_size().count());
  for (const int node : {-1, 0}) {
    const auto memory = map_huge_pages(size, node);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.get()) % kHuge, 0u);
    const std::string flags = flags_of(memory.get());
    if (madvise(memory.get(), page_size().count(), MADV_HUGEPAGE) == 0) {
      EXPECT_NE(flags.find(" hg"), std::string::npos) << flags;
    }
    int policy = MPOL_DEFAULT;
    uint64_t nodes[16] = {};
    if (syscall(SYS_get_mempolicy, &policy, nodes, 1024, memory.get(), MPOL_F_ADDR) == 0) {
      EXPECT_EQ(policy, node < 0 ? MPOL_DEFAULT : MPOL_PREFERRED);
      EXPECT_EQ(nodes[0], node < 0 ? 0u : 1u);
    }
    std::fill_n(memory.get(), size.count(), std::byte{3});
    EXPECT_EQ(std::count(memory.get(), memory.get() + size.count(), std::byte{3}),
              size.count());
  }
}

TEST(Pages, OfANodeThatDoesNotExistAreThereAllTheSame) {
  for (const int node : {63, 64, 1'000'000}) {
    const auto memory = map_huge_pages(Bytes(4 << 20), node);
    memory.get()[(4 << 20) - 1] = std::byte{1};
  }
  const auto few = map_huge_pages(Bytes(0), 0);
  few.get()[0] = std::byte{1};
}

}  // namespace
}  // namespace tidemark

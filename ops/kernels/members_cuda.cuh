// Many tensors for one kernel: each of its blocks works on a part of one of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark {

// So many in one launch; their addresses are arguments of the kernel, of which there are 4 KiB.
inline constexpr int kMaxMembers = 32;

// `kOperands`: tensors of one size that go together, such as a parameter and its gradient.
template <size_t kOperands, class T = float>
struct Members {
  struct Member {
    T* at[kOperands];
    int64_t elements;
    int64_t first_block;
  };
  Member member[kMaxMembers];
  int count = 0;
  int64_t blocks = 0;  // that all of them take

  // Gives the member's addresses, for the caller to set. Each block takes `of_block` elements.
  // REQUIRES: there are fewer than kMaxMembers.
  Member& add(int64_t elements, int64_t of_block) {
    Member& added = member[count++];
    added.elements = elements;
    added.first_block = blocks;
    blocks += (elements + of_block - 1) / of_block;
    return added;
  }
};

// The one that this block works on: the last that starts at or before it.
template <size_t kOperands, class T>
__device__ const typename Members<kOperands, T>::Member& member_of_block(
    const Members<kOperands, T>& members) {
  int i = 0;
  while (i + 1 < members.count && members.member[i + 1].first_block <= blockIdx.x) ++i;
  return members.member[i];
}

}  // namespace tidemark

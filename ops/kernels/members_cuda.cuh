// One kernel launch over many tensors: each block works on part of one member.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tidemark {

// Members per launch. Their addresses are kernel arguments, which are limited to 4 KiB.
inline constexpr int kMaxMembers = 32;

// `kOperands`: tensors of one size that belong together, such as a parameter and its gradient.
template <size_t kOperands, class T = float>
struct Members {
  struct Member {
    T* at[kOperands];
    int64_t elements;
    int64_t first_block;
  };
  Member member[kMaxMembers];
  int count = 0;
  int64_t blocks = 0;  // in total, over all members

  // Appends a member and returns it; the caller sets its addresses. Each block takes `of_block`
  // elements. REQUIRES: there are fewer than kMaxMembers members.
  Member& add(int64_t elements, int64_t of_block) {
    Member& added = member[count++];
    added.elements = elements;
    added.first_block = blocks;
    blocks += (elements + of_block - 1) / of_block;
    return added;
  }
};

// The member that this block works on: the last whose first_block is at most blockIdx.x.
template <size_t kOperands, class T>
__device__ const typename Members<kOperands, T>::Member& member_of_block(
    const Members<kOperands, T>& members) {
  int i = 0;
  while (i + 1 < members.count && members.member[i + 1].first_block <= blockIdx.x) ++i;
  return members.member[i];
}

}  // namespace tidemark

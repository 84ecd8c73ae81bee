#include "tests/support/ptx/async_copies.h"

#include <cstring>

namespace tidemark::ptx {

AsyncCopies::AsyncCopies(SharedMemory& shared, int threads)
    : shared_(shared), threads_(static_cast<size_t>(threads)) {}

void AsyncCopies::start(int thread, const Copy& copy) {
  Thread& mine = threads_[static_cast<size_t>(thread)];
  mine.started.push_back({copy, mine.groups});
  shared_.begin_copy(copy.to, copy.bytes);
}

void AsyncCopies::commit(int thread) { ++threads_[static_cast<size_t>(thread)].groups; }

void AsyncCopies::wait(int thread, int64_t left) {
  Thread& mine = threads_[static_cast<size_t>(thread)];
  std::erase_if(mine.started, [&](const Started& started) {
    const bool over = started.group < mine.groups - left;
    if (over) finish(thread, started.copy);
    return over;
  });
}

void AsyncCopies::finish(int thread, const Copy& copy) {
  std::byte* const to = shared_.data() + copy.to;
  std::memset(to, 0, static_cast<size_t>(copy.bytes));
  if (copy.read > 0) {
    std::memcpy(to, copy.from, static_cast<size_t>(copy.read));
  }
  shared_.end_copy(copy.to, copy.bytes, thread);
}

std::optional<AsyncCopies::Unfinished> AsyncCopies::unfinished() const {
  for (size_t i = 0; i < threads_.size(); ++i) {
    const std::vector<Started>& started = threads_[i].started;
    if (!started.empty()) return Unfinished{static_cast<int>(i), started.front().copy};
  }
  return std::nullopt;
}

}  // namespace tidemark::ptx

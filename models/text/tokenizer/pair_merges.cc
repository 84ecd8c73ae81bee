#include <queue>
#include <utility>

#include "models/text/tokenizer/byte_level.h"
#include "models/text/tokenizer/subword_model.h"
#include "models/text/unicode.h"

namespace tidemark::tokenizers {
namespace {

uint64_t pair_key(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

// A piece of the word in a doubly linked list, by index.
struct Symbol {
  int32_t id;
  int64_t previous, next;  // -1 for none
  bool is_joined = false;  // to its left neighbour
};

struct Candidate {
  int64_t rank;
  int64_t left;  // index of the left symbol
  int32_t joined;
  bool operator<(const Candidate& other) const {  // a queue's top is its largest
    return std::pair(rank, left) > std::pair(other.rank, other.left);
  }
};

}  // namespace

PairMerges::PairMerges(const PieceTable& pieces, Options options)
    : pieces_(pieces), options_(std::move(options)) {
  if (!options_.byte_fallback) return;
  for (int byte = 0; byte < 256; ++byte) {
    bytes_.push_back(pieces.find(byte_piece(static_cast<uint8_t>(byte))));
  }
}

Bytes PairMerges::bytes() const {
  constexpr size_t kPerMerge = 64, kAlways = 1 << 13;  // a node in the heap; bytes_
  return Bytes(static_cast<int64_t>(kAlways + merges_.size() * kPerMerge +
                                    merges_.bucket_count() * sizeof(void*)));
}

void PairMerges::add_merge(int32_t left, int32_t right, int64_t rank, int32_t joined) {
  merges_.insert_or_assign(pair_key(left, right), Merge{rank, joined});
}

const PairMerges::Merge* PairMerges::find(int32_t left, int32_t right) const {
  const auto found = merges_.find(pair_key(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

// The word's characters as pieces.
void PairMerges::start(std::string_view word, std::vector<int32_t>& ids) const {
  // An unknown character is appended late: the next one may be fused with it.
  bool unknown_pending = false;
  const auto flush = [&] {
    if (unknown_pending) ids.push_back(*options_.unknown);
    unknown_pending = false;
  };
  std::string symbol;
  for (size_t at = 0; at < word.size();) {
    const size_t begin = at;
    next_code_point(word, at);
    symbol = begin > 0 ? options_.continuation : "";
    symbol += word.substr(begin, at - begin);
    if (at == word.size()) symbol += options_.word_end;
    if (const auto id = pieces_.find(symbol)) {
      flush();
      ids.push_back(*id);
      continue;
    }
    if (options_.byte_fallback) {
      const size_t already = ids.size();
      for (const char byte : symbol) {
        const auto id = bytes_[static_cast<unsigned char>(byte)];
        if (!id) break;
        ids.push_back(*id);
      }
      if (ids.size() == already + symbol.size()) continue;
      ids.resize(already);
    }
    if (!options_.unknown) continue;
    if (!options_.fuse_unknown) flush();
    unknown_pending = true;
  }
  flush();
}

void PairMerges::split(std::string_view word, std::vector<int32_t>& ids) const {
  if (options_.ignore_merges) {
    if (const auto id = pieces_.find(word)) {
      ids.push_back(*id);
      return;
    }
  }
  const size_t already = ids.size();
  start(word, ids);

  std::vector<Symbol> symbols;
  const auto count = static_cast<int64_t>(ids.size() - already);
  symbols.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    symbols.push_back(
        {ids[already + static_cast<size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1});
  }
  ids.resize(already);
  const auto at = [&](int64_t index) -> Symbol& { return symbols[static_cast<size_t>(index)]; };

  std::priority_queue<Candidate> queue;
  const auto consider = [&](int64_t left) {
    if (left < 0 || at(left).next < 0) return;
    const Merge* const merge = find(at(left).id, at(at(left).next).id);
    if (merge != nullptr) queue.push({merge->rank, left, merge->joined});
  };
  for (int64_t i = 0; i + 1 < count; ++i) consider(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = at(best.left);
    if (left.is_joined || left.next < 0) continue;
    Symbol& right = at(left.next);
    // Either symbol may have grown since.
    const Merge* const merge = find(left.id, right.id);
    if (merge == nullptr || merge->joined != best.joined) continue;
    left.id = merge->joined;
    left.next = right.next;
    right.is_joined = true;
    if (left.next >= 0) at(left.next).previous = best.left;
    consider(left.previous);
    consider(best.left);
  }
  for (const Symbol& symbol : symbols) {
    if (!symbol.is_joined) ids.push_back(symbol.id);
  }
}

}  // namespace tidemark::tokenizers

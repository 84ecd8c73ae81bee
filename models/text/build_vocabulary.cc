#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <unordered_map>
#include <utility>

#include "models/text/basic_tokenizer.h"
#include "models/text/vocabulary.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr int64_t kSpecialPieces = 5;

using Pair = std::pair<int32_t, int32_t>;

struct PairHash {
  size_t operator()(const Pair& pair) const {
    return std::hash<uint64_t>()(static_cast<uint64_t>(pair.first) << 32 |
                                 static_cast<uint32_t>(pair.second));
  }
};

struct CountedWord {
  std::vector<int32_t> pieces;
  int64_t count = 0;
};

// The characters of a word; all but the first have the continuation mark.
std::vector<std::string> characters_of(const Word& word) {
  std::vector<std::string> characters;
  for (size_t i = 0; i < word.characters.size(); ++i) {
    const size_t begin = word.characters[i].at;
    const size_t end =
        i + 1 < word.characters.size() ? word.characters[i + 1].at : word.text.size();
    characters.push_back((i > 0 ? std::string(kContinuation) : "") +
                         word.text.substr(begin, end - begin));
  }
  return characters;
}

class Builder {
 public:
  Builder(std::string_view text, const BuildVocabularyOptions& options) : options_(options) {
    std::map<std::vector<std::string>, int64_t> words;
    for_each_word(text, options.uncased,
                  [&](const Word& word) { ++words[characters_of(word)]; });
    choose_characters(words);
    for (const auto& [characters, count] : words) add_word(characters, count);
  }

  Vocabulary run() {
    for (size_t word = 0; word < words_.size(); ++word) count_pairs(word, +1);
    for (const auto& [pair, count] : counts_) heap_.push({count, pair});
    while (static_cast<int64_t>(pieces_.size()) < options_.size && !heap_.empty()) {
      const Candidate best = heap_.top();
      heap_.pop();
      const auto now = counts_.find(best.pair);
      if (now == counts_.end() || now->second != best.count) continue;  // outdated
      if (best.count < options_.least_pair_count) break;
      merge(best.pair);
    }
    return Vocabulary(pieces_);
  }

 private:
  struct Candidate {
    int64_t count;
    Pair pair;
    // The most frequent pair is on top; among equals, the one made of older pieces.
    bool operator<(const Candidate& other) const {
      return count != other.count ? count < other.count : pair > other.pair;
    }
  };

  void choose_characters(const std::map<std::vector<std::string>, int64_t>& words) {
    std::map<std::string, int64_t> counts;
    for (const auto& [characters, count] : words) {
      for (const std::string& character : characters) counts[character] += count;
    }
    std::vector<std::pair<int64_t, std::string>> ranked;
    ranked.reserve(counts.size());
    for (const auto& [character, count] : counts) ranked.emplace_back(-count, character);
    std::sort(ranked.begin(), ranked.end());
    const int64_t room = std::min(options_.characters, options_.size - kSpecialPieces);
    if (static_cast<int64_t>(ranked.size()) > room) ranked.resize(static_cast<size_t>(room));
    std::set<std::string> chosen;
    for (auto& [count, character] : ranked) chosen.insert(std::move(character));
    for (const std::string_view special :
         {kPadPiece, kUnknownPiece, kClassPiece, kSeparatorPiece, kMaskPiece}) {
      pieces_.emplace_back(special);
    }
    for (const std::string& character : chosen) id_of(character);
  }

  void add_word(const std::vector<std::string>& characters, int64_t count) {
    CountedWord word{{}, count};
    for (const std::string& character : characters) {
      const auto id = ids_.find(character);
      if (id == ids_.end()) return;
      word.pieces.push_back(id->second);
    }
    words_.push_back(std::move(word));
  }

  int32_t id_of(const std::string& piece) {
    const auto [at, added] = ids_.emplace(piece, static_cast<int32_t>(pieces_.size()));
    if (added) pieces_.push_back(piece);
    return at->second;
  }

  // Adds what a word contributes, or takes it back.
  void count_pairs(size_t index, int64_t sign) {
    const CountedWord& word = words_[index];
    for (size_t i = 0; i + 1 < word.pieces.size(); ++i) {
      const Pair pair{word.pieces[i], word.pieces[i + 1]};
      counts_[pair] += sign * word.count;
      changed_.insert(pair);
      if (sign > 0) places_[pair].push_back(index);
    }
  }

  void merge(const Pair& pair) {
    const int32_t merged =
        id_of(pieces_[static_cast<size_t>(pair.first)] +
              pieces_[static_cast<size_t>(pair.second)].substr(kContinuation.size()));
    std::vector<size_t> places = std::move(places_[pair]);
    places_.erase(pair);
    std::sort(places.begin(), places.end());
    places.erase(std::unique(places.begin(), places.end()), places.end());
    changed_.clear();
    for (const size_t place : places) {
      count_pairs(place, -1);
      std::vector<int32_t>& pieces = words_[place].pieces;
      size_t kept = 0;
      for (size_t i = 0; i < pieces.size(); ++i) {
        const bool joins = i + 1 < pieces.size() && Pair{pieces[i], pieces[i + 1]} == pair;
        pieces[kept++] = joins ? merged : pieces[i];
        if (joins) ++i;
      }
      pieces.resize(kept);
      count_pairs(place, +1);
    }
    for (const Pair& changed : changed_) {
      const int64_t count = counts_[changed];
      if (count == 0) {
        counts_.erase(changed);
        places_.erase(changed);
      } else {
        heap_.push({count, changed});
      }
    }
  }

  const BuildVocabularyOptions& options_;
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<CountedWord> words_;
  std::unordered_map<Pair, int64_t, PairHash> counts_;
  // Words in which a pair occurs or once occurred, some more than once.
  std::unordered_map<Pair, std::vector<size_t>, PairHash> places_;
  std::set<Pair> changed_;
  std::priority_queue<Candidate> heap_;
};

}  // namespace

Vocabulary build_vocabulary(std::string_view text, const BuildVocabularyOptions& options) {
  if (options.size < kSpecialPieces || options.characters < 0) {
    throw UsageError("[build_vocabulary] a vocabulary of " + std::to_string(options.size) +
                     " pieces has no space for the " + std::to_string(kSpecialPieces) +
                     " special pieces");
  }
  return Builder(text, options).run();
}

}  // namespace tidemark

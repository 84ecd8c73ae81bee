#include <algorithm>

#include "models/text/tokenizer/subword_model.h"
#include "models/text/unicode.h"

namespace tidemark::tokenizers {

void LongestPieces::split(std::string_view word, std::vector<int32_t>& ids) const {
  const size_t already = ids.size();
  bool found = count_code_points(word) <= options_.longest_word;
  std::string scratch;
  for (size_t begin = 0; found && begin < word.size();) {
    scratch = begin > 0 ? options_.continuation : "";
    const size_t mark = scratch.size();
    scratch += word.substr(begin, pieces_.longest_piece());
    found = false;
    for (size_t size = scratch.size(); size > mark && !found; --size) {
      const auto id = pieces_.find(std::string_view(scratch).substr(0, size));
      if (!id) continue;
      ids.push_back(*id);
      begin += size - mark;
      found = true;
    }
  }
  if (found) return;
  ids.resize(already);
  ids.push_back(options_.unknown);
}

}  // namespace tidemark::tokenizers

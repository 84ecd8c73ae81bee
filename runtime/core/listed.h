// Names in a sentence.
#pragma once

#include <string>
#include <vector>

namespace tidemark {

// "a, b, c"; with " or " before the last: "a, b or c".
inline std::string listed(const std::vector<std::string>& names,
                          const std::string& before_last = ", ") {
  std::string list;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) list += i + 1 == names.size() ? before_last : ", ";
    list += names[i];
  }
  return list;
}

}  // namespace tidemark

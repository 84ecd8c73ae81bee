// Texts with a part that is changed, to see how it is refused.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace tidemark::testing {

// The first `from` made `to`. The test fails if there is none.
inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

}  // namespace tidemark::testing

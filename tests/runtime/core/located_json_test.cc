#include "runtime/core/located_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace tidemark {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

std::string message(const std::string& text, int max_depth = 16) {
  try {
    parse_located<json>("a.json", text, max_depth);
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(LocatedJson, ParsesAsNlohmannDoes) {
  const std::string text = R"({"a": [1, 2.5, {"b": null}], "c": "d"})";
  EXPECT_EQ(parse_located<json>("a.json", text), json::parse(text));
}

TEST(LocatedJson, SaysWhereAFaultIsWithoutTheParsersCode) {
  EXPECT_THAT(message("{\"name\": }"), HasSubstr("a.json, byte 9: not JSON: parse error at"));
  EXPECT_THAT(message("{\"name\": }"), Not(HasSubstr("json.exception")));
  EXPECT_THAT(message("[1e9999]"), HasSubstr("a.json: not JSON: number overflow"));
  EXPECT_THAT(message("[1] 2"), HasSubstr("byte 4: not JSON"));
}

TEST(LocatedJson, CutsALongTokenOfTheFile) {
  EXPECT_LT(message("[" + std::string(100000, '1') + "x]").size(), 300U);
  EXPECT_LT(message("[\"" + std::string(100000, 'x')).size(), 300U);
}

TEST(LocatedJson, RefusesDeepNestingWhereItBegins) {
  EXPECT_EQ(message("[[[]]]", 3), "");
  EXPECT_THAT(message("[[[[]]]]", 2), HasSubstr("byte 4: nested more than 2 deep"));
  EXPECT_THAT(message(std::string(1000000, '[')), HasSubstr("nested more than 16 deep"));
}

TEST(LocatedJson, RefusesAKeyTwiceWhereAsked) {
  const auto unique = [](const std::string& text) {
    return parse_located<json>("a.json", text, kMaxJsonDepth, JsonKeys::kUnique);
  };
  EXPECT_EQ(unique(R"({"a": {"a": 1, "b": {}}, "b": [{"a": 1}, {"a": 2}]})").size(), 2u);
  EXPECT_EQ(parse_located<json>("a.json", R"({"a": 1, "a": 2})")["a"], 2);
  try {
    unique(R"({"a": {"b": 1}, "c": {"b": {"d": 1}, "b": 2}})");
    ADD_FAILURE() << "no DataError";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("'b' appears twice"));
    EXPECT_EQ(error.offset(), 40);  // behind the key
  }
}

}  // namespace
}  // namespace tidemark

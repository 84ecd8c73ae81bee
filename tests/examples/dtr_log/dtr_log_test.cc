#include "examples/dtr_log/dtr_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "runtime/core/errors.h"

namespace tidemark {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = DtrLog::Step::Kind;

std::string constant(const std::string& name, int memory = 8) {
  return R"({"INSTRUCTION":"CONSTANT","NAME":")" + name + "\"}\n" +
         R"({"INSTRUCTION":"MEMORY","NAME":")" + name + R"(","MEMORY":")" +
         std::to_string(memory) + "\"}\n";
}
std::string result(const std::string& name, int memory = 8, int alias = -1) {
  return R"({"INSTRUCTION":"MEMORY","NAME":")" + name + R"(","MEMORY":")" +
         std::to_string(memory) + "\"}\n" + R"({"INSTRUCTION":"ALIAS","NAME":")" + name +
         R"(","ALIAS":")" + std::to_string(alias) + "\"}\n";
}
std::string call(const std::string& args, const std::string& results, int time = 1) {
  return R"({"INSTRUCTION":"CALL","NAME":"op","ARGS":[)" + args + R"(],"RESULT":[)" + results +
         R"(],"TIME":")" + std::to_string(time) + "\"}\n";
}
std::string two(const std::string& kind, const std::string& to, const std::string& from) {
  return R"({"INSTRUCTION":")" + kind + R"(","DST":")" + to + R"(","SRC":")" + from + "\"}\n";
}
std::string release(const std::string& name) {
  return R"({"INSTRUCTION":"RELEASE","NAME":")" + name + "\"}\n";
}
std::string mutate(const std::string& args, const std::string& which) {
  return R"({"INSTRUCTION":"MUTATE","NAME":"add_","ARGS":[)" + args + R"(],"MUTATE":[)" +
         which + R"(],"TIME":"2"})" + "\n";
}

// As "constant 0; call 0 -> 1; free 0".
std::string steps(const std::string& text) {
  std::string found;
  for (const DtrLog::Step& step : parse_dtr_log("log", text).steps) {
    if (!found.empty()) found += "; ";
    found += step.kind == Kind::kConstant ? "constant"
             : step.kind == Kind::kFree   ? "free"
                                          : "call";
    for (const uint32_t input : step.inputs) found += ' ' + std::to_string(input);
    if (step.kind == Kind::kCall) found += " ->";
    for (const uint32_t output : step.outputs) found += ' ' + std::to_string(output);
  }
  return found;
}

TEST(DtrLogTest, CallsReadAndWriteStorages) {
  const std::string text = constant("x", 100) + call(R"("x","x")", R"("a","b")", 70) +
                           result("a", 10) + result("b", 20);
  const DtrLog log = parse_dtr_log("log", text);
  ASSERT_EQ(log.storages.size(), 3u);
  EXPECT_TRUE(log.storages[0].constant);
  EXPECT_FALSE(log.storages[1].constant);
  EXPECT_EQ(log.storages[0].bytes, Bytes(100));
  EXPECT_EQ(log.storages[2].bytes, Bytes(20));
  EXPECT_EQ(steps(text), "constant 0; call 0 -> 1 2");
  EXPECT_THAT(log.live, ElementsAre(0, 1, 2));
  EXPECT_EQ(log.calls, 1);
  EXPECT_EQ(log.time, Nanos(70));
  EXPECT_EQ(log.steps[1].line, 3);
}

TEST(DtrLogTest, AStorageIsFreeWhenItsLastNameIsGone) {
  EXPECT_EQ(steps(constant("x") + two("COPY", "y", "x") + release("x") + call(R"("y")", "") +
                  release("y")),
            "constant 0; call 0 ->; free 0");
}

TEST(DtrLogTest, AViewIsItsArgumentsStorage) {
  EXPECT_EQ(steps(constant("x") + call(R"("x")", R"("a")") + result("a") +
                  call(R"("x","a")", R"("v","n")") + result("v", 8, 1) + result("n") +
                  release("a") + call(R"("v")", "") + release("v")),
            "constant 0; call 0 -> 1; call 0 1 -> 2; call 1 ->; free 1");
}

TEST(DtrLogTest, MutateIsCopyOnWrite) {
  const std::string text = constant("x", 24) + two("COPY", "old", "x") + constant("g") +
                           mutate(R"("x","g")", "0") + call(R"("x","old")", "");
  EXPECT_EQ(steps(text), "constant 0; constant 1; call 0 1 -> 2; call 2 0 ->");
  EXPECT_EQ(parse_dtr_log("log", text).storages[2].bytes, Bytes(24));
  EXPECT_EQ(steps(constant("x") + mutate(R"("x")", "0") + mutate(R"("x")", "0")),
            "constant 0; call 0 -> 1; free 0; call 1 -> 2; free 1");
}

TEST(DtrLogTest, CopyFromLetsGoOfWhatWasThere) {
  const std::string text =
      constant("x") + constant("y") + two("COPY_FROM", "x", "y") + release("y");
  EXPECT_EQ(steps(text), "constant 0; constant 1; free 0");
  EXPECT_THAT(parse_dtr_log("log", text).live, ElementsAre(1));
  EXPECT_EQ(steps(constant("x") + two("COPY_FROM", "x", "x")), "constant 0");
}

TEST(DtrLogTest, SomeThingsArePassedOver) {
  EXPECT_EQ(
      steps("\n" + release("never was") + R"({"INSTRUCTION":"ANNOTATE","ANNOTATION":"START"})" +
            "\r\n\n" + constant("x") + release("x") + release("x")),
      "constant 0; free 0");
  EXPECT_THAT(parse_dtr_log("log", "").steps, IsEmpty());
  // Numbers may be numbers.
  EXPECT_EQ(parse_dtr_log("log", R"({"INSTRUCTION":"CONSTANT","NAME":"x"}
{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":12})")
                .storages[0]
                .bytes,
            Bytes(12));
}

TEST(DtrLogTest, AMistakeIsNamedWithItsLine) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse_dtr_log("some.log", text);
    } catch (const DataError& error) {
      EXPECT_LE(error.offset(), static_cast<int64_t>(text.size()));
      return error.what();
    }
    return "no error";
  };
  const std::string x = constant("x");
  EXPECT_THAT(message(x + "{"), HasSubstr("line 3: not JSON: parse error at"));
  EXPECT_THAT(message(x + "[]"), HasSubstr("line 3: not a JSON object"));
  EXPECT_THAT(message("{}"), HasSubstr("line 1: \"INSTRUCTION\" is missing"));
  EXPECT_THAT(message(R"({"INSTRUCTION":1})"), HasSubstr("is not a string"));
  EXPECT_THAT(message(R"({"INSTRUCTION":"JUMP"})"), HasSubstr("unknown instruction 'JUMP'"));
  EXPECT_THAT(message(R"({"INSTRUCTION":"CONSTANT","NAME":"x"})"),
              HasSubstr("expected MEMORY of 'x', which line 1 requires"));
  EXPECT_THAT(message(R"({"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":"1"})"),
              HasSubstr("without the instruction that it belongs to"));
  EXPECT_THAT(message(constant("x", -5)), HasSubstr("line 2: \"MEMORY\" is -5"));
  EXPECT_THAT(message(x + call(R"("y")", "")), HasSubstr("line 3: 'y' is not defined"));
  EXPECT_THAT(message(x + call("3", "")), HasSubstr("\"ARGS\" is not a string"));
  EXPECT_THAT(message(x + call(R"("x")", R"("a")")), HasSubstr("expected MEMORY of 'a'"));
  EXPECT_THAT(message(x + call(R"("x")", R"("a")") + result("b")),
              HasSubstr("line 4: expected"));
  EXPECT_THAT(message(x + call(R"("x")", R"("a")") + result("a", 8, 1)),
              HasSubstr("line 5: \"ALIAS\" is 1"));
  EXPECT_THAT(message(x + call("", R"("a")") + result("a", 8, 0)), HasSubstr("\"ALIAS\" is 0"));
  EXPECT_THAT(message(x + call("", R"("x")") + result("x")),
              HasSubstr("'x' is already defined"));
  EXPECT_THAT(message(x + x), HasSubstr("line 4: 'x' is already defined"));
  EXPECT_THAT(message(x + two("COPY", "x", "x")), HasSubstr("is already defined"));
  EXPECT_THAT(message(x + two("COPY_FROM", "y", "x")), HasSubstr("'y' is not defined"));
  EXPECT_THAT(message(x + mutate(R"("x")", "1")), HasSubstr("\"MUTATE\" is 1"));
  EXPECT_THAT(message(x + mutate("", "0")), HasSubstr("\"MUTATE\" is longer"));
  EXPECT_THAT(message(x + call(R"("x")", "", -1)), HasSubstr("\"TIME\" is -1"));
  EXPECT_THAT(
      message(x + R"({"INSTRUCTION":"CALL","NAME":"f","ARGS":[],"RESULT":[],"TIME":"1x"})"),
      HasSubstr("not a whole number"));
  EXPECT_THAT(message(R"({"INSTRUCTION":"CONSTANT","NAME":"x"}
{"INSTRUCTION":"MEMORY","NAME":"x","MEMORY":18446744073709551615})"),
              HasSubstr("line 2: \"MEMORY\""));
  EXPECT_THROW(read_dtr_log("/nowhere.log"), DataError);
}

}  // namespace
}  // namespace tidemark

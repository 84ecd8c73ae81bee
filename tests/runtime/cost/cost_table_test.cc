#include "runtime/cost/cost_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "runtime/core/errors.h"
#include "runtime/cost/cost_model.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;

CostTable some_costs() {
  CostTable table{.device = "cpu", .offload_bandwidth = 2e9};
  table.operators[0x00f3] = {"conv2d (1, 2)", Nanos(81'200), true};
  table.operators[0xffffffffffffffff] = {"relu \"x\"", Nanos(7), false};
  return table;
}

DeviceProfile profile() {
  DeviceProfile profile;
  profile.float32_flops = profile.memory_bandwidth = 1e9;
  profile.offload_bandwidth = profile.reload_bandwidth = 1e9;
  profile.kernel_floor = Nanos(3);
  return profile;
}

TEST(CostTableTest, AFileSaysTheSame) {
  EXPECT_EQ(parse_costs("f", to_json(some_costs())), some_costs());
  EXPECT_EQ(parse_costs("f", to_json(CostTable{})), CostTable{});
}

TEST(CostTableTest, WhatIsWrongIsNamed) {
  const auto message = [](const std::string& text) -> std::string {
    try {
      parse_costs("some.json", text);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  };
  const auto with = [&](const std::string& operators) {
    return message(R"({"format": "tidemark-costs", "version": 1, "operators": )" + operators +
                   "}");
  };
  EXPECT_THAT(message(""), HasSubstr("some.json"));
  EXPECT_THAT(message("[1"), HasSubstr("not JSON"));
  EXPECT_THAT(message("[1e9999]"), HasSubstr("not JSON"));
  EXPECT_THAT(message("[]"), HasSubstr("format"));
  EXPECT_THAT(message(R"({"format": "other"})"), HasSubstr("format"));
  EXPECT_THAT(message(R"({"format": "tidemark-costs", "version": 2})"), HasSubstr("version"));
  EXPECT_THAT(with("3"), HasSubstr("not a list"));
  EXPECT_THAT(with("[3]"), HasSubstr("operator 1: not an object"));
  EXPECT_THAT(with(R"([{"ns": 1}])"), HasSubstr("operator 1: \"signature\" is missing"));
  EXPECT_THAT(with(R"([{"signature": "12", "ns": 1}])"), HasSubstr("16 hexadecimal"));
  EXPECT_THAT(with(R"([{"signature": "000000000000000g", "ns": 1}])"), HasSubstr("16 hexa"));
  for (const char* ns : {"0", "-1", "1e300", "\"1\"", "null", "0.2"}) {
    EXPECT_THAT(with(R"([{"signature": "0000000000000001", "ns": )" + std::string(ns) + "}]"),
                HasSubstr("operator 1: \"ns\""))
        << ns;
  }
  const std::string one = R"({"signature": "0000000000000001", "ns": 1})";
  EXPECT_THAT(with("[" + one + "," + one + "]"),
              HasSubstr("operator 2: 0000000000000001 appears"));
  EXPECT_THAT(message(R"({"format": "tidemark-costs", "version": 1, "operators": [],
                          "reload_bandwidth": -1})"),
              HasSubstr("reload_bandwidth"));
  EXPECT_THAT(message(R"({"format": "tidemark-costs", "version": 1, "operators": [],
                          "reload_bandwith": 1})"),
              HasSubstr("unknown key \"reload_bandwith\""));
  EXPECT_THAT(with(R"([{"signature": "0000000000000001", "ns": 1, "us": 2}])"),
              HasSubstr("operator 1: unknown key \"us\""));
  EXPECT_THROW(read_costs("/nowhere/costs.json"), DataError);
  EXPECT_THROW(read_costs("/dev/zero"), DataError);  // endless
  EXPECT_THROW(write_costs({}, "/nowhere/costs.json"), DataError);
}

TEST(CostTableTest, AModelGoesByIt) {
  CostModel model(profile());
  model.use(std::make_shared<const CostTable>(some_costs()));
  EXPECT_EQ(model.time(model.key(0x00f3, {0, Bytes(5), false})), Nanos(81'200));
  EXPECT_EQ(model.time(model.key(1, {0, Bytes(5), false})), Nanos(5));  // not in the table
  EXPECT_EQ(model.offload_time(Bytes(2000)), Nanos(1000));
  EXPECT_EQ(model.reload_time(Bytes(2000)), Nanos(2000));
}

TEST(CostTableTest, AModelSaysWhatItMeasured) {
  CostModel model(profile());
  const CostKey timed = model.key(1, {0, Bytes(500), false}, "timed");
  model.key(2, {0, Bytes(600), false}, "not timed");
  model.measured_op(timed, Nanos(450));
  model.measured_copy(StreamId::kReload, Bytes(4 << 20), Nanos(0), Nanos(4 << 20));
  model.end_step(true);
  const CostTable table = model.table();
  EXPECT_EQ(table.operators.at(1), (CostTable::Operator{"timed", Nanos(450), true}));
  EXPECT_EQ(table.operators.at(2), (CostTable::Operator{"not timed", Nanos(600), false}));
  EXPECT_FALSE(table.offload_bandwidth);
  ASSERT_TRUE(table.reload_bandwidth);
  EXPECT_NEAR(*table.reload_bandwidth, 1e9, 1);
}

// A table has averages, in which copies the other way are counted already.
TEST(CostTableTest, AGivenLinkIsNotSlowedDownTwice) {
  DeviceProfile slowed = profile();
  slowed.duplex_reload_bandwidth = slowed.reload_bandwidth / 2;
  CostTable table;
  table.reload_bandwidth = 3e9;
  CostModel model(slowed);
  EXPECT_EQ(model.link_rates().in_beside, model.link_rates().in / 2);
  model.use(std::make_shared<CostTable>(table));
  EXPECT_EQ(model.link_rates().in, 3e9);
  EXPECT_EQ(model.link_rates().in_beside, 3e9);
}

TEST(CostTableTest, WhatIsForgottenIsPricedAnew) {
  CostModel model(profile());
  const CostKey old = model.key(1, {0, Bytes(500), false});
  model.key(2, {0, Bytes(600), false});
  model.forget();
  EXPECT_EQ(model.size(), 0u);
  EXPECT_FALSE(model.is_current(old));
  EXPECT_EQ(model.time(old), Nanos(3));
  EXPECT_EQ(model.time(0), Nanos(0));
  model.measured_op(old, Nanos(9));  // from a call that ran before: ignored
  model.end_step(true);
  const CostKey now = model.key(1, {0, Bytes(500), false});
  EXPECT_TRUE(model.is_current(now));
  EXPECT_NE(now, old);
  EXPECT_EQ(model.time(now), Nanos(500));
}

}  // namespace
}  // namespace tidemark

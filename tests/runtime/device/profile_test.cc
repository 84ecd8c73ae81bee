#include "runtime/device/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "runtime/core/errors.h"
#include "runtime/device/builtin_profiles.h"
#include "runtime/device/device.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

Json builtin(const std::string& name) {
  for (const BuiltinProfile& profile : builtin_profiles()) {
    if (profile.name == name) return Json::parse(profile.json);
  }
  return {};
}

TEST(Profile, ThereIsOneForEachMachineNamed) {
  EXPECT_THAT(profile_names(),
              ::testing::UnorderedElementsAre("a100-80gb", "h100-80gb", "h200-141gb", "host",
                                              "p100-16gb", "rtx4090-24gb", "v100-16gb"));
  for (const std::string& name : profile_names()) {
    SCOPED_TRACE(name);
    const DeviceProfile profile = load_profile(name);
    EXPECT_EQ(profile.name, name);
    EXPECT_EQ(profile.backend, name == "host" ? Backend::kCpu : Backend::kModel);
  }
}

TEST(Profile, EachNumberHasASource) {
  for (const std::string& name : profile_names()) {
    SCOPED_TRACE(name);
    const Json json = builtin(name);
    for (const auto& [key, value] : json.items()) {
      if (!value.is_number()) continue;
      ASSERT_TRUE(json["sources"].contains(key)) << key;
      EXPECT_GT(json["sources"][key].get<std::string>().size(), 10u) << key;
    }
  }
}

TEST(Profile, ReadsUnitsIntoTypes) {
  const DeviceProfile a100 = load_profile("a100-80gb");
  EXPECT_EQ(a100.memory, Bytes(int64_t{80} << 30));
  EXPECT_EQ(a100.float32_flops, 156e12);
  EXPECT_EQ(a100.memory_bandwidth, 2.039e12);
  EXPECT_EQ(a100.launch_cost, Nanos(5000));
}

TEST(Profile, AFileIsAProfileToo) {
  const auto path = std::filesystem::path(::testing::TempDir()) / "tidemark_profile_test.json";
  Json json = builtin("a100-80gb");
  json["name"] = "mine";
  json.erase("sources");
  std::ofstream(path) << json;
  EXPECT_EQ(load_profile(path).name, "mine");
  EXPECT_EQ(make_device("sim:" + path.string())->name(), "sim:mine");
  std::filesystem::remove(path);
  EXPECT_THROW(load_profile(path), DataError);
  std::filesystem::create_symlink("/dev/zero", path);  // endless
  EXPECT_THROW(load_profile(path), DataError);
  std::filesystem::remove(path);
}

void expect_error(const std::string& text, int64_t offset, const std::string& what) {
  try {
    parse_profile(text, "some.json");
    FAIL() << "did not throw: " << what;
  } catch (const DataError& error) {
    EXPECT_EQ(error.file(), "some.json");
    EXPECT_EQ(error.offset(), offset) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(what));
  }
}

TEST(Profile, ErrorsSayWhereAndWhat) {
  expect_error("{\"name\": }", 9, "not JSON");
  expect_error("", 0, "not JSON");
  expect_error("[1e9999]", -1, "not JSON");
  expect_error("[]", -1, "a profile is a JSON object");

  const Json good = builtin("h100-80gb");
  auto with = [&](const std::string& key, const Json& value) {
    Json json = good;
    json[key] = value;
    return json.dump();
  };
  auto at = [](const std::string& text, const std::string& key) {
    return static_cast<int64_t>(text.find('"' + key + '"'));
  };
  for (const auto& [key, value, what] : std::vector<std::tuple<std::string, Json, std::string>>{
           {"float16_flops", 1e12, "unknown key"},
           {"float32_flops", "fast", "not a number"},
           {"float32_flops", 0, "must be positive"},
           {"reload_bandwidth", -1, "must be positive"},
           {"launch_cost_ns", -1, "must not be negative"},
           {"pin_bandwidth", -1, "must not be negative"},
           {"pin_bandwidth", 1e30, "out of range"},
           {"pin_bandwidth", nullptr, "not a number"},
           {"memory_bytes", 1e30, "out of range"},
           {"compute_efficiency", 1.5, "must be at most 1"},
           {"name", "", "must be a non-empty string"},
           {"backend", "tpu", "must be cpu, cuda or model"},
       }) {
    SCOPED_TRACE(key);
    const std::string text = with(key, value);
    expect_error(text, at(text, key), what);
  }
  for (const auto& [key, value] : good.items()) {
    if (key == "sources") continue;
    Json json = good;
    json.erase(key);
    json["sources"].erase(key);
    expect_error(json.dump(), 0, "\"" + key + "\": missing");
  }
  Json sourced = good;
  sourced["sources"]["speed"] = "somewhere";
  expect_error(sourced.dump(), at(sourced.dump(), "speed"), "unknown key");
}

TEST(Profile, NoProfileIsNeededForZeroTimes) {
  Json json = builtin("h100-80gb");
  json["launch_cost_ns"] = 0;
  EXPECT_EQ(parse_profile(json.dump(), "x").launch_cost, Nanos(0));
}

TEST(Profile, PinningCountsOrDoesNot) {
  Json json = builtin("h100-80gb");
  for (const double rate : {0.0, 4.5e9}) {
    json["pin_bandwidth"] = rate;
    EXPECT_EQ(parse_profile(json.dump(), "x").pin_bandwidth, rate);
  }
}

TEST(MakeDevice, UnknownNamesSayWhatThereIs) {
  for (const std::string name : {"gpu", "", "CPU", "sim:", "sim:a1000"}) {
    SCOPED_TRACE(name);
    try {
      make_device(name);
      FAIL() << "did not throw";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("a100-80gb"));
    }
  }
}

}  // namespace
}  // namespace tidemark

#include "examples/common/resnet_flags.h"

#include <gmock/gmock.h>

#include <regex>
#include <string>
#include <vector>

#include "examples/common/run.h"
#include "runtime/core/errors.h"
#include "runtime/policy/registry.h"
#include "tests/examples/parse_arguments.h"

namespace tidemark {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::optional<ResNetFlags> parse(const std::vector<std::string>& arguments, int& code) {
  return testing::parse_arguments(parse_resnet_flags, arguments, code);
}

ResNetFlags parsed_resnet(const std::vector<std::string>& arguments) {
  return testing::parsed_arguments(parse_resnet_flags, arguments);
}

TEST(Flags, Defaults) {
  const ResNetFlags flags = parsed_resnet({});
  EXPECT_EQ(flags.model, "resnet18");
  EXPECT_EQ(flags.device, "cpu");
  EXPECT_EQ(flags.policy, "tide");
  EXPECT_FALSE(flags.budget);
  EXPECT_FALSE(flags.host_limit);
  EXPECT_FALSE(flags.disk_limit);
  EXPECT_FALSE(flags.memory);
  EXPECT_EQ(flags.delta.early_start, 0.75);
  EXPECT_EQ(flags.delta.repairs, "");
  EXPECT_TRUE(flags.overlap);
}

TEST(Flags, WhetherStepsArePlannedReachesTheSession) {
  EXPECT_EQ(session_options(parsed_resnet({})).plan, std::nullopt);
  EXPECT_EQ(session_options(parsed_resnet({"--plan", "auto"})).plan, true);
  EXPECT_EQ(session_options(parsed_resnet({"--plan", "off"})).plan, false);
}

TEST(Flags, MemoryIsBytesOrWhatIsFree) {
  EXPECT_EQ(parsed_resnet({"--memory", "4GiB"}).memory->bytes, Bytes(int64_t{4} << 30));
  const ResNetFlags flags = parsed_resnet({"--memory", "auto"});
  ASSERT_TRUE(flags.memory);
  EXPECT_FALSE(flags.memory->bytes);
  int code = 0;
  EXPECT_FALSE(parse({"--memory", "50%"}, code));
  EXPECT_EQ(code, 2);
}

TEST(Flags, EveryOneOfTheContract) {
  const ResNetFlags flags = parsed_resnet({"--model",
                                           "resnet50",
                                           "--data",
                                           "synthetic",
                                           "--batch",
                                           "8",
                                           "--steps",
                                           "3",
                                           "--image-size",
                                           "64",
                                           "--optimizer",
                                           "adamw",
                                           "--lr",
                                           "0.5",
                                           "--device",
                                           "sim:host",
                                           "--budget",
                                           "1.5GiB",
                                           "--host-limit",
                                           "10MiB",
                                           "--disk-limit",
                                           "1GiB",
                                           "--policy",
                                           "delta",
                                           "--filter",
                                           "greedy",
                                           "--early-start",
                                           "off",
                                           "--prefetch",
                                           "7",
                                           "--repairs",
                                           "no-backward,async",
                                           "--no-overlap",
                                           "--seed",
                                           "9",
                                           "--threads",
                                           "2",
                                           "--json",
                                           "a.json",
                                           "--trace",
                                           "t.json",
                                           "--dry-run",
                                           "--momentum",
                                           "0.5",
                                           "--weight-decay",
                                           "0"});
  EXPECT_EQ(flags.model, "resnet50");
  EXPECT_EQ(flags.data, "synthetic");
  EXPECT_EQ(flags.batch, 8);
  EXPECT_EQ(flags.steps, 3);
  EXPECT_EQ(flags.image_size, 64);
  EXPECT_EQ(flags.optimizer, "adamw");
  EXPECT_EQ(flags.learning_rate, 0.5);
  EXPECT_EQ(flags.momentum, 0.5);
  EXPECT_EQ(flags.weight_decay, 0);
  EXPECT_EQ(flags.device, "sim:host");
  EXPECT_EQ(flags.budget->bytes, Bytes(3 << 29));
  EXPECT_EQ(flags.host_limit, Bytes(10 << 20));
  EXPECT_EQ(flags.disk_limit, Bytes(1 << 30));
  EXPECT_EQ(flags.delta.filter, "greedy");
  EXPECT_EQ(flags.delta.early_start, 0);
  EXPECT_EQ(flags.delta.prefetch, 7);
  EXPECT_EQ(flags.delta.repairs, "no-backward,async");
  EXPECT_FALSE(flags.overlap);
  EXPECT_EQ(flags.seed, 9u);
  EXPECT_EQ(flags.threads, 2);
  EXPECT_EQ(flags.json, "a.json");
  EXPECT_EQ(flags.trace, "t.json");
  EXPECT_TRUE(flags.dry_run);
}

TEST(Flags, EarlyStartIsAShare) {
  EXPECT_EQ(parsed_resnet({"--early-start", "0.5"}).delta.early_start, 0.5);
}

// What is said of arguments that are refused.
std::string complaint(const std::vector<std::string>& arguments) {
  int code = 0;
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(parse(arguments, code));
  EXPECT_EQ(code, 2);
  return ::testing::internal::GetCapturedStderr();
}

TEST(Flags, AMistypedOneIsNamedWithTheOneThatWasMeant) {
  const std::string meant = "train_resnet: unknown flag --budgt; did you mean --budget?\n";
  EXPECT_THAT(complaint({"--budgt", "50%"}), StartsWith(meant));
  EXPECT_THAT(complaint({"--budgt=50%"}), StartsWith(meant));
  EXPECT_THAT(complaint({"--steps", "3", "--stpes", "3"}), HasSubstr("mean --steps?"));
  EXPECT_THAT(complaint({"-policy", "lru"}), HasSubstr("-policy; did you mean --policy?"));
  EXPECT_THAT(complaint({"--lf", "1"}), HasSubstr("unknown flag --lf; did you mean --lr?"));
  EXPECT_THAT(complaint({"--frobnicate", "3"}), HasSubstr("unknown flag --frobnicate\n"));
  // Mistyped, so that another flag lacks what it excludes or needs.
  EXPECT_THAT(complaint({"--epochs", "1", "--steps", "1", "--stpes", "3"}),
              HasSubstr("unknown flag --stpes; did you mean --steps?"));
  EXPECT_THAT(complaint({"stray"}), HasSubstr("unexpected argument 'stray'"));
  EXPECT_THAT(complaint({"--batch", "8", "-5"}), HasSubstr("unexpected argument '-5'"));
}

TEST(Flags, AFilterNeedsAPolicyThatTakesOne) {
  for (const PolicyInfo& policy : policies()) {
    const std::vector<std::string> arguments{"--filter", "lru", "--policy",
                                             std::string(policy.name)};
    if (policy.takes_filter) {
      EXPECT_EQ(parsed_resnet(arguments).delta.filter, "lru") << policy.name;
    } else {
      EXPECT_THAT(complaint(arguments),
                  HasSubstr("--filter: '" + std::string(policy.name) + "' takes no filter"));
    }
  }
  EXPECT_EQ(parsed_resnet({"--filter", "lru"}).delta.filter, "lru") << "tide is the default";
  EXPECT_THAT(complaint({"--policy", "none", "--filter", "lru"}),
              HasSubstr("filters are for tide, price, delta, delta-paper and offload-only"));
}

TEST(Flags, RepairsNeedAPolicyMadeOfDelta) {
  for (const PolicyInfo& policy : policies()) {
    const std::vector<std::string> arguments{"--repairs", "no-link", "--policy",
                                             std::string(policy.name)};
    if (policy.takes_repairs) {
      EXPECT_EQ(parsed_resnet(arguments).delta.repairs, "no-link") << policy.name;
    } else {
      EXPECT_THAT(complaint(arguments),
                  HasSubstr("--repairs: '" + std::string(policy.name) + "' takes no repairs"));
    }
  }
  EXPECT_THAT(complaint({"--repairs", "no-such", "--policy", "delta"}),
              HasSubstr("DELTA has no repair 'such'; available: backward, async"));
}

class BadFlags : public ::testing::TestWithParam<std::vector<std::string>> {};

TEST_P(BadFlags, EndWithCodeTwo) {
  int code = 0;
  EXPECT_FALSE(parse(GetParam(), code));
  EXPECT_EQ(code, 2);
}

INSTANTIATE_TEST_SUITE_P(All, BadFlags,
                         ::testing::ValuesIn(std::vector<std::vector<std::string>>{
                             {"--no-such-flag"},
                             {"stray"},
                             {"--model", "resnet19"},
                             {"--budget", "0%"},
                             {"--budget", "fifty%"},
                             {"--budget", "-1"},
                             {"--budget", "1 parsec"},
                             {"--host-limit", "none"},
                             {"--early-start", "1.5"},
                             {"--early-start", "0"},
                             {"--filter", "dtr"},
                             {"--policy", "tides"},
                             {"--policy", "delta", "--repairs", "backwards"},
                             {"--batch", "0"},
                             {"--steps", "2", "--epochs", "2"},
                             {"--optimizer", "lion"},
                             {"--lr", "nan"},
                             {"--lr", "1e39"},
                             {"--momentum", "nan"},
                             {"--weight-decay", "nan"}}));

TEST(Flags, HelpIsNoMistake) {
  int code = 7;
  ::testing::internal::CaptureStdout();
  EXPECT_FALSE(parse({"--help"}, code));
  const std::string help = ::testing::internal::GetCapturedStdout();
  EXPECT_EQ(code, 0);
  EXPECT_THAT(help, Not(HasSubstr("{false}")));
  // 0 is no default where it is no value either.
  EXPECT_FALSE(std::regex_search(help, std::regex(R"(in \[[1-9]\d* - \d+\]=0)")));
  EXPECT_THAT(help, HasSubstr("--steps INT in [1 - 1073741824]"));
  for (const char* flag : {"--model", "--data", "--budget", "--host-limit", "--disk-limit",
                           "--policy", "--filter", "--early-start", "--prefetch", "--repairs",
                           "--no-overlap", "--dry-run", "--trace", "--json", "Exit codes"}) {
    EXPECT_THAT(help, HasSubstr(flag));
  }
  for (const DeltaRepair& repair : delta_repairs()) {
    EXPECT_THAT(help, HasSubstr("\n" + std::string(34, ' ') + std::string(repair.name) + ": "));
  }
}

TEST(Memory, IsASizeOrAuto) {
  EXPECT_EQ(parse_memory("4GiB").bytes, Bytes(int64_t{4} << 30));
  EXPECT_EQ(parse_memory("auto").bytes, std::nullopt);
  try {
    parse_memory("50%");
    ADD_FAILURE();
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("auto"), std::string::npos) << error.what();
  }
}

TEST(Budget, SharesAreRoundedDownToBlocks) {
  EXPECT_EQ(parse_budget("50%").resolve(Bytes(4096)), Bytes(2048));
  EXPECT_EQ(parse_budget("33.3%").resolve(Bytes(4096)), Bytes(1024));
  EXPECT_EQ(parse_budget("100%").resolve(Bytes(4096)), Bytes(4096));
  EXPECT_EQ(parse_budget("1000").resolve(Bytes(4096)), Bytes(1000));
  EXPECT_THROW(parse_budget("50"), UsageError);  // means 50%
  EXPECT_THROW(parse_budget(""), UsageError);
  EXPECT_THROW(parse_budget("%"), UsageError);
}

}  // namespace
}  // namespace tidemark

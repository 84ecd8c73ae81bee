#include "examples/compare/picture_recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "examples/common/resnet_flags.h"
#include "examples/common/resnet_job.h"
#include "runtime/session/dry_run.h"

namespace tidemark::compare {
namespace {

class PictureRecorderTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Pictures of three steps of ResNet-18 under `share` of its peak on the simulator.
  void run(const std::string& policy, double share,
           const std::function<void(const StepPicture&, const StepStats&)>& check) {
    ResNetFlags flags;
    flags.device = "sim:host";
    flags.data = "synthetic";
    flags.image_size = 24;
    flags.batch = 16;
    const auto job = open_resnet_job(flags, false);
    SessionOptions options;
    options.device = flags.device;
    const UnmanagedNeed need = measure_unmanaged(options, job->dry_run());
    options.policy = policy;
    options.budget = share_of(need.peak, share);
    options.host_limit = policy == "none" ? Bytes(0) : 2 * need.peak;
    Session session(options);
    PictureRecorder recorder(session);
    const auto training = job->start();
    for (int64_t step = 0; step < 3; ++step) {
      training->prepare(step);
      const StepStats stats = session.step([&] { training->step(); });
      check(recorder.take(), stats);
      live_ = session.arena().offsets().used();
    }
  }
  Bytes live_{0};
};

int64_t count(const StepPicture& picture, Ending ending) {
  return std::count_if(picture.blocks.begin(), picture.blocks.end(),
                       [&](const PlacedBlock& block) { return block.ending == ending; });
}
int64_t count(const StepPicture& picture, EventKind kind) {
  return std::count_if(picture.decisions.begin(), picture.decisions.end(),
                       [&](const Decision& decision) { return decision.kind == kind; });
}

TEST_P(PictureRecorderTest, EveryReleaseIsSeenWithItsBlock) {
  int64_t released = 0;
  run(GetParam(), 0.4, [&](const StepPicture& picture, const StepStats& stats) {
    ASSERT_FALSE(picture.incomplete);
    EXPECT_EQ(count(picture, Ending::kEvicted), stats.evictions);
    EXPECT_EQ(count(picture, Ending::kDropped), stats.clean_drops);
    EXPECT_LE(count(picture, Ending::kOffloaded), stats.offloads);  // or copied ahead of need
    EXPECT_GE(count(picture, Ending::kMoved), stats.compactions);   // each moves several
    EXPECT_EQ(picture.decisions_made, stats.evictions + stats.offloads + stats.clean_drops);
    if (picture.decisions_made <= static_cast<int64_t>(kDecisionsKept)) {
      EXPECT_EQ(count(picture, EventKind::kOffload), count(picture, Ending::kOffloaded));
    }
    EXPECT_EQ(picture.duration, stats.duration);
    released += picture.decisions_made;
  });
  EXPECT_GT(released, 0);
}

TEST_P(PictureRecorderTest, BlocksAreNamedAndNeverOverlap) {
  run(GetParam(), 0.4, [&](const StepPicture& picture, const StepStats&) {
    const std::vector<PlacedBlock>& blocks = picture.blocks;
    ASSERT_GT(blocks.size(), 100U);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const PlacedBlock& a = blocks[i];
      EXPECT_STRNE(a.name, "") << to_string(a.category) << ", " << to_string(a.ending);
      EXPECT_LE((a.offset + a.bytes).value(), picture.capacity.count());
      EXPECT_LE(a.to, picture.duration);
      for (size_t k = 0; k < i; ++k) {
        const PlacedBlock& b = blocks[k];
        const bool same_time = a.from < b.to && b.from < a.to;
        const bool same_place = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
        ASSERT_FALSE(same_time && same_place) << a.name << " at " << a.offset.value() << " and "
                                              << b.name << " at " << b.offset.value();
      }
    }
  });
}

TEST_P(PictureRecorderTest, WhatStaysIsWhatTheArenaHolds) {
  StepPicture last;
  run(GetParam(), 0.4, [&](const StepPicture& picture, const StepStats&) { last = picture; });
  Bytes stays{0};
  for (const PlacedBlock& block : last.blocks) {
    if (block.ending == Ending::kStays) stays += block.bytes;
  }
  EXPECT_EQ(stays, live_);
  EXPECT_EQ(last.curve.back().used, live_);
  for (const CurvePoint& point : last.curve) EXPECT_LE(point.used, last.capacity);
  EXPECT_TRUE(std::is_sorted(last.curve.begin(), last.curve.end(),
                             [](const auto& a, const auto& b) { return a.time < b.time; }));
}

TEST_P(PictureRecorderTest, WhatIsReleasedSaysWhatFor) {
  run(GetParam(), 0.4, [&](const StepPicture& picture, const StepStats&) {
    for (const PlacedBlock& block : picture.blocks) {
      const bool gone = block.ending != Ending::kStays && block.ending != Ending::kUnused;
      EXPECT_EQ(block.reason != Reason::kNone, gone)
          << block.name << " " << to_string(block.ending);
    }
  });
}

TEST_P(PictureRecorderTest, WhatIsThereFromStepToStepIsOfNoOperator) {
  run(GetParam(), 0.4, [&](const StepPicture& picture, const StepStats&) {
    for (const PlacedBlock& block : picture.blocks) {
      if (block.category == Category::kParameter) {
        EXPECT_STREQ(block.name, "parameter");
      } else if (block.category == Category::kBuffer) {
        EXPECT_STREQ(block.name, "buffer");
      } else if (block.category == Category::kOptimizerState) {
        EXPECT_STREQ(block.name, "optimizer state");
      }
    }
  });
}

TEST_P(PictureRecorderTest, DecisionsSayWhatTheyCost) {
  run(GetParam(), 0.4, [&](const StepPicture& picture, const StepStats&) {
    for (const Decision& d : picture.decisions) {
      EXPECT_GT(d.bytes, Bytes(0));
      EXPECT_STRNE(d.name, "");
      EXPECT_NE(d.reason, Reason::kNone);
      EXPECT_GE(d.age, Nanos(0));
      if (d.kind == EventKind::kEvict || d.kind == EventKind::kOffload) {
        EXPECT_GT(d.cost, Nanos(0)) << d.name;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Policies, PictureRecorderTest,
                         ::testing::Values("tide", "delta", "dtr", "offload-only", "random"),
                         [](const auto& case_) {
                           std::string name = case_.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_F(PictureRecorderTest, WithoutAPolicyNothingIsReleased) {
  run("none", 1, [&](const StepPicture& picture, const StepStats& stats) {
    EXPECT_EQ(picture.decisions_made, 0);
    EXPECT_EQ(count(picture, Ending::kEvicted) + count(picture, Ending::kOffloaded), 0);
    Bytes most{0};
    for (const CurvePoint& point : picture.curve) most = std::max(most, point.used);
    EXPECT_EQ(most, stats.peak_live);
    for (const PlacedBlock& block : picture.blocks) {
      if (block.category == Category::kActivation) {
        EXPECT_NE(block.storage, 0U) << block.name;
      }
    }
  });
}

TEST(ThinOut, KeepsTheEndsOfEachStretch) {
  std::vector<CurvePoint> curve;
  curve.reserve(1000);
  for (int i = 0; i < 1000; ++i) curve.push_back({Nanos(i), Bytes(i == 500 ? 99 : 1)});
  const std::vector<CurvePoint> thin = thin_out(curve, 100);
  EXPECT_LE(thin.size(), 100U);
  EXPECT_EQ(std::count_if(thin.begin(), thin.end(),
                          [](const CurvePoint& p) { return p.used == Bytes(99); }),
            1);
}

}  // namespace
}  // namespace tidemark::compare

// Checks that a network trained in little memory ends with the same bits as in ample memory.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/checksum.h"
#include "models/nn/module.h"
#include "models/optim/optimizer.h"
#include "runtime/session/dry_run.h"
#include "runtime/session/session.h"

namespace tidemark::testing {

// A network with its optimizer, made in the current session.
struct SmallTraining {
  std::shared_ptr<Module> model;
  std::shared_ptr<Optimizer> optimizer;
  std::function<void()> step;  // forward, backward, update
};

// Trains two steps on the CPU, unmanaged and with a budget a tenth of the way from the smallest
// to the peak. With the budget something is released, and parameters, buffers and state must be
// the same.
inline void expect_same_bits_under_a_budget(const std::function<SmallTraining()>& make) {
  const auto train = [&](const SessionOptions& options) {
    Session session(options);
    const SmallTraining training = make();
    int64_t released = 0;
    for (int i = 0; i < 2; ++i) {
      const StepStats& stats = session.step(training.step);
      released += stats.evictions + stats.offloads;
    }
    return std::pair(tensors_checksum({training.model->parameters(), training.model->buffers(),
                                       training.optimizer->state()}),
                     released);
  };
  SessionOptions options{.device = "cpu", .threads = 1, .policy = "none", .seed = 5};
  options.budget = Bytes(int64_t{3} << 30);
  const auto [expected, none] = train(options);
  EXPECT_EQ(none, 0);
  const Program program = [&] {
    const auto training = std::make_shared<SmallTraining>(make());
    const std::function<void()> step = [training] { training->step(); };
    return std::vector<std::function<void()>>{step, step};
  };
  options.policy = "tide";
  options.host_limit = Bytes(int64_t{3} << 30);
  const UnmanagedNeed need = measure_unmanaged(options, program);
  const Bytes least = find_minimum_budget(options, program, need).budget;
  options.budget = align_up(least + share_of(need.peak - least, 0.1));
  const auto [bits, released] = train(options);
  EXPECT_GT(released, 0);
  EXPECT_EQ(bits, expected);
}

}  // namespace tidemark::testing

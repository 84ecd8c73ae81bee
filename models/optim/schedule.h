// Learning rates over a run: pure functions of the step, counted from 0.
//
//   kConstant  rate, after the warm-up
//   kLinear    down to final_rate in a straight line      (BERT)
//   kCosine    down to final_rate along half a cosine     (GPT)
//   kMultiStep a tenth of it after a third of the steps, a hundredth after two thirds (ResNet)
//
//   rate |      ____
//        |     /    \___         warm-up: steps [0, warmup_steps), step s has
//        |    /         \___     rate * s / warmup_steps, as in Hugging Face transformers;
//        |___/              \    the decay ends at step `total_steps` and stays there
//        0   warmup      total
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tidemark {

enum class ScheduleKind : uint8_t { kConstant, kLinear, kCosine, kMultiStep };

// "constant", "linear", "cosine" or "multistep"; nullopt for any other name.
std::optional<ScheduleKind> parse_schedule(std::string_view name);

struct RateSchedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double rate = 0;
  int64_t warmup_steps = 0;
  int64_t total_steps = 0;  // including the warm-up; kConstant ignores it
  double final_rate = 0;
};

// For optimizers' set_learning_rate(). REQUIRES: step >= 0.
double learning_rate(const RateSchedule& schedule, int64_t step);

}  // namespace tidemark

#include "examples/finetune/ways_table.h"

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "examples/common/run.h"
#include "examples/finetune/finetune_job.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

constexpr int64_t kRank = 8;

struct Way {
  std::string name, command;
  FinetuneFlags flags;
};

// `flags` with or without LoRA.
FinetuneFlags with_lora(FinetuneFlags flags, bool lora) {
  if (!lora) {
    flags.lora.reset();
    flags.adapter = "";
    flags.merge = false;
  } else if (!flags.lora) {
    flags.adam.masters = true;
    flags.lora = LoraOptions{.change = {.rank = kRank, .alpha = 2.0 * kRank}};
  }
  return flags;
}

// Whether --model is a name that has to give way to real weights.
bool lacks_weights(const FinetuneFlags& flags) {
  return !flags.on_simulator() && !std::filesystem::exists(flags.model);
}

std::vector<Way> ways_for(const FinetuneFlags& given) {
  std::vector<Way> ways;
  for (const bool lora : {false, true}) {
    FinetuneFlags flags = with_lora(given, lora);
    const std::string name =
        lora ? fmt::format("LoRA of rank {}", flags.lora->change.rank) : "all weights";
    const std::string command =
        "finetune --model " + (lacks_weights(given) ? "DIR" : given.model) +
        (!lora                   ? ""
         : given.adapter.empty() ? fmt::format(" --lora-rank {}", flags.lora->change.rank)
                                 : " --adapter " + given.adapter);
    ways.push_back({name, command, flags});
    flags.host_limit = flags.disk_limit = Bytes(0);
    ways.push_back({"  without offloading", "", flags});
  }
  return ways;
}

std::string milliseconds(const std::optional<Nanos>& time) {
  return time ? fmt::format("{:.0f} ms", to_ms(*time)) : "-";
}

}  // namespace

std::string ways_table(const FinetuneFlags& given) {
  FinetuneFlags flags = given;
  if (const auto memory = allowed_memory(flags)) flags.memory = MemoryAllowance{memory};
  std::string text = fmt::format(
      "{}, {} sequences of {} a step, on {}\n\n  {:<22}{:>12}{:>15}{:>12}{:>14}{:>15}\n",
      flags.model, flags.batch, flags.length, flags.device, "to train", "no limit", "smallest",
      "here", "a step here", "without limit");
  std::string commands;
  std::optional<Nanos> ample_step;  // offloading does not change it
  for (const Way& way : ways_for(flags)) {
    const std::unique_ptr<Job> job = open_finetune_job(way.flags, /*with_data=*/false);
    const bool is_first = !way.command.empty();
    const RunForecast found = forecast(way.flags, *job, /*with_ample=*/is_first);
    if (is_first) ample_step = found.ample_step;
    text += fmt::format("  {:<22}{:>12}{:>15}{:>12}{:>14}{:>15}\n", way.name,
                        format_bytes(found.peak),
                        (found.is_least ? "" : "<= ") + format_bytes(found.least),
                        found.step ? format_bytes(found.arena) : "too little",
                        milliseconds(found.step), milliseconds(ample_step));
    if (found.step && is_first) commands += "  " + way.command + "\n";
  }
  text += "  memory of the arena; times are simulated, from the device's profile\n";
  if (!commands.empty() && lacks_weights(flags)) {
    commands += "DIR: a folder or file with the weights, which a name does not bring along.\n";
  }
  return text + (commands.empty() ? "Neither fits: try a smaller --batch or --seq-length.\n"
                                  : "What fits, beside your other flags:\n" + commands);
}

}  // namespace tidemark

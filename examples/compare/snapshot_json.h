// Snapshots as JSON, for the page and for --json. Keys of counts and bytes are those of
// train_resnet --json. Times are in milliseconds, sizes in bytes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "examples/compare/snapshot.h"

namespace tidemark::compare {

// All but each lane's blocks and decisions.
nlohmann::ordered_json to_json(const Snapshot& now);
// Those of one lane: blocks as [offset, bytes, from, to, name, category, ending, age, storage,
// from_before], the largest (by bytes and time) of them, and how many there are besides.
nlohmann::ordered_json details_to_json(const Snapshot& now, const LaneView& lane);
nlohmann::ordered_json to_json(const LaneStep& step);
nlohmann::ordered_json to_json(const Decision& decision);

inline constexpr size_t kBlocksShown = 2000;

// "3f8ccccd", as in train_resnet --json.
std::string loss_bits(float loss);
std::string_view to_string(LaneStatus status);

}  // namespace tidemark::compare

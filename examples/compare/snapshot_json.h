// Snapshots as JSON, for the page and for --json. Keys of counts and bytes are those of
// train_resnet --json. Times are in milliseconds, sizes in bytes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "examples/compare/snapshot.h"

namespace tidemark::compare {

// Everything except each lane's blocks and decisions.
nlohmann::ordered_json to_json(const Snapshot& now);
// The blocks and decisions of one lane. A block is [offset, bytes, from, to, name, category,
// ending, age, storage, from_before]; only the largest (by bytes and time) are included, and
// the number of the others.
nlohmann::ordered_json details_to_json(const Snapshot& now, const LaneView& lane);
nlohmann::ordered_json to_json(const LaneStep& step);
nlohmann::ordered_json to_json(const Decision& decision);

inline constexpr size_t kBlocksShown = 2000;

// The bits of a loss, "3f8ccccd", as in train_resnet --json.
std::string loss_bits(float loss);
std::string_view to_string(LaneStatus status);

}  // namespace tidemark::compare

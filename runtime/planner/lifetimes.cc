#include "runtime/planner/lifetimes.h"

#include <algorithm>
#include <numeric>

namespace tidemark::planner {

std::vector<Placement> lifetimes(const Problem& problem, const std::vector<OpId>& order) {
  const auto count = static_cast<int64_t>(order.size());
  std::vector<int64_t> begin(problem.storages.size(), count), end(problem.storages.size(), 0);
  for (size_t i = 0; i < problem.storages.size(); ++i) {
    const Storage& s = problem.storages[i];
    const StorageId root = problem.root(static_cast<StorageId>(i));
    if (s.at_start) begin[root] = 0;
    if (s.at_end) end[root] = count;
  }
  for (int64_t t = 0; t < count; ++t) {
    const Operator& op = problem.operators[order[t]];
    for (const auto* uses : {&op.inputs, &op.outputs}) {
      for (const StorageId id : *uses) {
        const StorageId root = problem.root(id);
        begin[root] = std::min(begin[root], t);
        end[root] = std::max(end[root], t + 1);
      }
    }
  }
  std::vector<Placement> result;
  for (size_t i = 0; i < problem.storages.size(); ++i) {
    if (problem.storages[i].alias_of != kNone) continue;
    Placement placement;
    placement.storage = static_cast<StorageId>(i);
    placement.begin = std::min(begin[i], end[i]);
    placement.end = end[i];
    placement.size = problem.storages[i].size;
    result.push_back(placement);
  }
  std::vector<int64_t> position(order.size());
  for (int64_t t = 0; t < count; ++t) position[order[t]] = t;
  for (size_t i = 0; i < problem.operators.size(); ++i) {
    if (problem.operators[i].workspace == Bytes(0)) continue;
    Placement placement;
    placement.workspace_of = static_cast<OpId>(i);
    placement.begin = position[i];
    placement.end = position[i] + 1;
    placement.size = problem.operators[i].workspace;
    result.push_back(placement);
  }
  return result;
}

namespace {

std::vector<size_t> placement_of(const std::vector<Placement>& placements) {
  std::vector<size_t> result;
  for (size_t k = 0; k < placements.size(); ++k) {
    if (placements[k].storage == kNone) continue;
    result.resize(std::max<size_t>(result.size(), placements[k].storage + 1), 0);
    result[placements[k].storage] = k;
  }
  return result;
}

}  // namespace

std::vector<InPlace> usable_in_place(const Problem& problem,
                                     const std::vector<Placement>& lifetimes,
                                     const std::vector<OpId>& order) {
  const std::vector<size_t> at = placement_of(lifetimes);
  std::vector<int64_t> position(order.size());
  for (size_t t = 0; t < order.size(); ++t) position[order[t]] = static_cast<int64_t>(t);
  std::vector<InPlace> pairs = problem.may_be_in_place;
  const auto gain = [&](const InPlace& p) {
    return std::min(problem.storages[p.input].size, problem.storages[p.output].size);
  };
  std::stable_sort(pairs.begin(), pairs.end(),
                   [&](const InPlace& a, const InPlace& b) { return gain(a) > gain(b); });
  std::vector<bool> gives(problem.storages.size()), takes(problem.storages.size());
  std::vector<InPlace> result;
  for (const InPlace& pair : pairs) {
    const Placement& input = lifetimes[at[pair.input]];
    const Placement& output = lifetimes[at[pair.output]];
    const int64_t t = position[pair.op];
    if (input.end != t + 1 || output.begin != t || problem.storages[pair.input].at_end)
      continue;
    if (output.size != input.size || gives[pair.input] || takes[pair.output]) continue;
    gives[pair.input] = takes[pair.output] = true;
    result.push_back(pair);
  }
  return result;
}

Blocks to_blocks(const std::vector<Placement>& placements,
                 const std::vector<InPlace>& in_place) {
  const std::vector<size_t> at = placement_of(placements);
  std::vector<size_t> first(placements.size());
  std::iota(first.begin(), first.end(), size_t{0});
  const auto find = [&](size_t k) {
    while (first[k] != k) k = first[k] = first[first[k]];
    return k;
  };
  for (const InPlace& pair : in_place) first[find(at[pair.output])] = find(at[pair.input]);
  Blocks blocks;
  blocks.block_of.assign(placements.size(), 0);
  std::vector<size_t> block(placements.size(), SIZE_MAX);
  for (size_t k = 0; k < placements.size(); ++k) {
    const Placement& p = placements[k];
    size_t& b = block[find(k)];
    if (b == SIZE_MAX) {
      b = blocks.buffers.size();
      blocks.buffers.push_back({p.begin, p.end, p.size});
    }
    Buffer& buffer = blocks.buffers[b];
    buffer.begin = std::min(buffer.begin, p.begin);
    buffer.end = std::max(buffer.end, p.end);
    buffer.size = std::max(buffer.size, p.size);
    blocks.block_of[k] = b;
  }
  return blocks;
}

Bytes peak_load(const Problem& problem, const std::vector<OpId>& order) {
  return max_load(to_blocks(lifetimes(problem, order), {}).buffers);
}

}  // namespace tidemark::planner

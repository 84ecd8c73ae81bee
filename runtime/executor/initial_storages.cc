#include "runtime/executor/initial_storages.h"

#include <algorithm>
#include <map>

namespace tidemark {

InitialStorages::InitialStorages(const InUse& in_use) {
  entries_.reserve(in_use.size());
  for (size_t i = in_use.size(); i-- > 0;) entries_.emplace_back(*in_use[i]);
}

void InitialStorages::number(const StepTrace& trace, const StepRecorder& recorder) {
  std::map<uint32_t, uint32_t> number_of;  // by id
  for (uint32_t s = 0; s < trace.storages.size(); ++s) {
    if (trace.storages[s].at_start) number_of.emplace(recorder.id_of(s), s);
  }
  for (Entry& entry : entries_) {
    const auto found = number_of.find(entry.id);
    if (found == number_of.end()) continue;
    entry.number = found->second;
    number_of.erase(found);
  }
  if (number_of.empty()) return;
  const uint32_t unseen = number_of.begin()->second;
  why_not_ = "storage " + std::to_string(unseen) + " (" +
             std::string(trace.storages[unseen].label()) +
             ") appeared during the step, but no call of the step made it";
}

std::vector<Bytes> InitialStorages::foreign() const {
  std::vector<Bytes> sizes;
  for (size_t i = entries_.size(); i-- > 0;) {
    if (entries_[i].number == kForeign) sizes.push_back(entries_[i].size);
  }
  return sizes;
}

std::optional<std::vector<uint32_t>> InitialStorages::numbers(const InUse& in_use) const {
  std::vector<uint32_t> numbers(in_use.size(), kForeign);
  std::vector<const Entry*> missing;  // oldest first, like `fresh`
  std::vector<size_t> fresh;
  auto entry = entries_.begin();
  for (size_t i = in_use.size(); i-- > 0;) {
    const uint32_t id = in_use[i]->id();
    for (; entry != entries_.end() && entry->id < id; ++entry) missing.push_back(&*entry);
    if (entry == entries_.end() || entry->id != id) {
      fresh.push_back(i);
    } else {
      numbers[i] = (entry++)->number;
    }
  }
  for (; entry != entries_.end(); ++entry) missing.push_back(&*entry);
  for (const size_t i : fresh) {
    const Entry made(*in_use[i]);
    const auto found = std::find_if(missing.begin(), missing.end(),
                                    [&](const Entry* other) { return other->same_kind(made); });
    if (found == missing.end()) continue;
    numbers[i] = (*found)->number;
    missing.erase(found);
  }
  const bool all = std::all_of(missing.begin(), missing.end(),
                               [](const Entry* other) { return other->number == kForeign; });
  if (!all) return std::nullopt;
  return numbers;
}

}  // namespace tidemark

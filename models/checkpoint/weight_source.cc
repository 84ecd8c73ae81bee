#include "models/checkpoint/weight_source.h"

#include <algorithm>
#include <utility>

#include "runtime/core/errors.h"

namespace tidemark {

void WeightSource::set_entries(std::vector<WeightEntry> entries) {
  entries_ = std::move(entries);
  by_name_.clear();
  for (size_t i = 0; i < entries_.size(); ++i) by_name_.emplace(entries_[i].name, i);
}

size_t WeightSource::index_of(const WeightEntry& entry) const {
  const auto index = static_cast<size_t>(&entry - entries_.data());
  TIDEMARK_CHECK(index < entries_.size(), "the tensor belongs to this source");
  return index;
}

const WeightEntry* WeightSource::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

void WeightSource::fail(const WeightEntry& entry, const std::string& what) const {
  throw DataError(file_of(entry), entry.begin,
                  "tensor " + quoted_name(entry.name) + ": " + what);
}

void WeightSource::read(const WeightEntry& entry, std::span<std::byte> out) {
  if (entry.dtype) {
    TIDEMARK_CHECK(static_cast<int64_t>(out.size()) == entry.bytes().count(),
                   "the buffer has the tensor's size");
  }
  read(entry, Bytes(0), out);
}

void WeightSource::read(const WeightEntry& entry, Bytes offset, std::span<std::byte> out) {
  if (!entry.dtype) fail(entry, "is of type " + entry.type + ", which is not supported");
  const Bytes end = offset + Bytes(static_cast<int64_t>(out.size()));
  TIDEMARK_CHECK(offset >= Bytes(0) && end <= entry.bytes(),
                 "the range lies within the tensor");
  read_range(entry, offset, out);
}

std::string quoted_name(std::string_view name) {
  std::string shown(name.substr(0, 200));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c >= 0 && c < ' '; }, '?');
  return '\'' + shown + '\'';
}

}  // namespace tidemark

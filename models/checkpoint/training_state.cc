#include "models/checkpoint/training_state.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "models/checkpoint/safetensors_header.h"
#include "models/checkpoint/weights.h"
#include "models/checksum.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

constexpr std::string_view kFormat = "tidemark training state 1";
constexpr std::string_view kNoChecksum = "0000000000000000";
constexpr std::string_view kSetting = "setting.";
constexpr const char* kAlgorithms = "algorithms";

std::vector<NamedTensor> all_tensors(const Module& model, const Optimizer& optimizer) {
  std::vector<NamedTensor> all;
  const auto add = [&](const std::string& prefix, const std::vector<NamedTensor>& tensors) {
    for (const NamedTensor& named : tensors) all.push_back({prefix + named.name, named.tensor});
  };
  add("parameter.", model.trained());
  add("buffer.", model.buffers());
  add("optimizer.", optimizer.state());
  return all;
}

template <class Number>
std::string to_text(Number number) {
  char digits[32];
  const auto end = std::to_chars(std::begin(digits), std::end(digits), number).ptr;
  return {digits, end};
}

// The checksum's entry in the header.
std::string checksum_member(std::string_view value) {
  return "\"checksum\":\"" + std::string(value) + '"';
}

// Reads what saving wrote into __metadata__.
class Fields {
 public:
  explicit Fields(const SafetensorsFile& file) : file_(file) {
    if (text("format") != kFormat) fail("format", "is not '" + std::string(kFormat) + "'");
  }

  const std::string& text(const std::string& key) const {
    const auto field = file_.metadata().find(key);
    if (field == file_.metadata().end())
      fail(key, "is missing; the file is not a training state");
    return field->second;
  }

  template <class Number>
  Number number(const std::string& key) const {
    return parse<Number>(key, text(key));
  }

  // A number of steps, updates or random numbers. More than any run reaches means a damaged
  // file, and would overflow.
  int64_t count(const std::string& key) const {
    return checked_count(key, number<int64_t>(key));
  }

  std::vector<int64_t> counts(const std::string& key) const {
    std::vector<int64_t> all;
    std::string_view rest = text(key);
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(','), rest.size());
      all.push_back(checked_count(key, parse<int64_t>(key, rest.substr(0, end))));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return all;
  }

  [[noreturn]] void fail(const std::string& key, const std::string& what) const {
    throw DataError(file_.path(), kSafetensorsPrefix,
                    '\'' + key + "' in __metadata__: " + what);
  }

 private:
  int64_t checked_count(const std::string& key, int64_t count) const {
    constexpr int64_t kMaxCount = int64_t{1} << 62;
    if (count < 0 || count > kMaxCount) {
      fail(key, to_text(count) + "; must be from 0 to " + to_text(kMaxCount));
    }
    return count;
  }

  template <class Number>
  Number parse(const std::string& key, std::string_view digits) const {
    Number number{};
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      fail(key, "is not a number");
    }
    return number;
  }

  const SafetensorsFile& file_;
};

void check_checksum(const SafetensorsFile& file, const std::string& declared) {
  const auto fail = [&](const std::string& what) {
    throw DataError(file.path(), kSafetensorsPrefix, what);
  };
  InputFile bytes(file.path());
  std::vector<uint8_t> piece(static_cast<size_t>(file.data_begin()));
  bytes.read_exact(piece);
  const std::string member = checksum_member(declared);
  const auto at = std::search(piece.begin(), piece.end(), member.begin(), member.end());
  if (at == piece.end() || declared.size() != kNoChecksum.size()) {
    fail("'checksum' in __metadata__ has been changed");
  }
  const std::string blank = checksum_member(kNoChecksum);
  std::copy(blank.begin(), blank.end(), at);
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(piece)));
  piece.resize(size_t{1} << 20);
  while (const size_t n = bytes.read(piece)) {
    checksum.add(std::as_bytes(std::span(piece).first(n)));
  }
  if (bytes.position() != file.entries().back().end) bytes.fail("cannot be read to the end");
  if (checksum.hex() != declared) {
    fail("damaged: the checksum is " + checksum.hex() + ", but was " + declared +
         " when written");
  }
}

SafetensorsFile open_checked(const std::string& path) {
  SafetensorsFile file(path);
  const Fields fields(file);
  if (file.entries().empty()) fields.fail("format", "the file has no tensors");
  check_checksum(file, fields.text("checksum"));
  return file;
}

WeightMetadata settings_in(const SafetensorsFile& file) {
  WeightMetadata settings;
  for (const auto& [key, value] : file.metadata()) {
    if (key.starts_with(kSetting)) settings[key.substr(kSetting.size())] = value;
  }
  return settings;
}

// Null: the file has none.
std::shared_ptr<const AlgorithmTable> algorithms_in(const SafetensorsFile& file) {
  const auto field = file.metadata().find(kAlgorithms);
  if (field == file.metadata().end()) return nullptr;
  try {
    return std::make_shared<const AlgorithmTable>(
        parse_algorithms("table of algorithms", field->second));
  } catch (const DataError& error) {
    Fields(file).fail(kAlgorithms, error.what());
  }
}

TrainingState state_in(const SafetensorsFile& file) {
  const Fields fields(file);
  TrainingState state;
  state.step = fields.count("step");
  state.data.epoch = fields.count("data_epoch");
  state.data.index = fields.count("data_index");
  state.data.order_seed = fields.number<uint64_t>("data_order_seed");
  state.algorithms = algorithms_in(file);
  state.settings = settings_in(file);
  return state;
}

// Null: none were chosen.
void check_algorithms(const AlgorithmTable* saved, const AlgorithmTable* own,
                      const std::string& path) {
  const AlgorithmTable none;
  if ((saved ? *saved : none) == (own ? *own : none)) return;
  throw UsageError("[load_training_state] " + path +
                   " was saved by a session whose calls had other algorithms "
                   "(SessionOptions::algorithms); give this session those that "
                   "read_training_state() returns");
}

}  // namespace

void save_training_state(const std::string& path, const Module& model,
                         const Optimizer& optimizer, const TrainingState& state) {
  Session& session = Session::current();
  const std::vector<NamedTensor> tensors = without_shared(all_tensors(model, optimizer));
  std::string updates;
  for (const int64_t count : optimizer.update_counts()) {
    updates += (updates.empty() ? "" : ",") + to_text(count);
  }
  WeightMetadata metadata{
      {"format", std::string(kFormat)},
      {"checksum", std::string(kNoChecksum)},
      {"step", to_text(state.step)},
      {"data_epoch", to_text(state.data.epoch)},
      {"data_index", to_text(state.data.index)},
      {"data_order_seed", to_text(state.data.order_seed)},
      {"random_seed", to_text(session.seed())},
      {"random_offset", to_text(session.random_offset())},
      {"learning_rate", to_text(optimizer.learning_rate())},
      {"updates", updates},
  };
  if (const auto& algorithms = session.options().algorithms) {
    metadata[kAlgorithms] = to_json(*algorithms);
  }
  for (const auto& [key, value] : state.settings) {
    metadata[std::string(kSetting) + key] = value;
  }
  std::vector<SafetensorsSpec> specs;
  specs.reserve(tensors.size());
  for (const NamedTensor& named : tensors) {
    specs.push_back({named.name, named.tensor.dtype(), named.tensor.shape()});
  }
  SafetensorsWriter writer(path, specs, metadata);
  Checksum checksum;
  checksum.add(std::as_bytes(std::span(writer.header())));
  const auto write = [&](std::span<const std::byte> piece) {
    checksum.add(piece);
    writer.write(piece);
  };
  for (const NamedTensor& named : tensors) values_to(write, named.tensor);
  const size_t at = writer.header().find(checksum_member(kNoChecksum));
  TIDEMARK_CHECK(at != std::string::npos, "the header holds the checksum");
  const std::string member = checksum_member(checksum.hex());
  writer.file().overwrite(static_cast<int64_t>(at), std::as_bytes(std::span(member)));
  writer.commit();
}

TrainingState load_training_state(const std::string& path, Module& model,
                                  Optimizer& optimizer) {
  Session& session = Session::current();
  SafetensorsFile file = open_checked(path);
  const Fields fields(file);
  TrainingState state = state_in(file);
  const auto seed = fields.number<uint64_t>("random_seed");
  if (seed != session.seed()) {
    throw UsageError("[load_training_state] " + path + " was saved by a session with seed " +
                     to_text(seed) + ", but this session has " + to_text(session.seed()));
  }
  check_algorithms(state.algorithms.get(), session.options().algorithms.get(), path);
  const auto random_offset = static_cast<uint64_t>(fields.count("random_offset"));
  const auto learning_rate = fields.number<double>("learning_rate");
  if (!std::isfinite(learning_rate) || learning_rate < 0) {
    fields.fail("learning_rate", to_text(learning_rate) + "; must be finite and not negative");
  }
  std::vector<int64_t> updates = fields.counts("updates");
  if (updates.size() != optimizer.update_counts().size()) {
    fields.fail("updates", "for " + to_text(updates.size()) +
                               " parameters, but the optimizer has " +
                               to_text(optimizer.update_counts().size()));
  }
  load_tensors(all_tensors(model, optimizer), file);
  optimizer.set_update_counts(std::move(updates));
  optimizer.set_learning_rate(learning_rate);
  session.set_random_offset(random_offset);
  return state;
}

TrainingState read_training_state(const std::string& path) {
  return state_in(open_checked(path));
}

WeightMetadata read_training_settings(const std::string& path) {
  const SafetensorsFile file(path);
  const Fields format_is_checked(file);
  return settings_in(file);
}

}  // namespace tidemark

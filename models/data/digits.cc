#include <algorithm>
#include <numeric>
#include <string_view>

#include "models/data/dataset.h"
#include "models/data/memory_images.h"
#include "models/data/random.h"
#include "runtime/core/input_file.h"

namespace tidemark {
namespace {

constexpr int64_t kRows = 1797, kTrainRows = 1437, kSide = 8, kTop = 16, kClasses = 10;
constexpr size_t kPixels = kSide * kSide;

// Statistics of all values of all rows, scaled to 0..1.
constexpr float kMean = 0.3053f, kDeviation = 0.3760f;

// Reads the number at `at` and its end (a comma, or nothing after the last); false if there is
// none in 0..top.
bool take_number(std::string_view line, size_t& at, int top, bool last, uint8_t& number) {
  int value = 0;
  const size_t begin = at;
  while (at < line.size() && line[at] >= '0' && line[at] <= '9' && at - begin < 3) {
    value = 10 * value + (line[at++] - '0');
  }
  if (at == begin || value > top) return false;
  number = static_cast<uint8_t>(value);
  if (last) return at == line.size();
  return at < line.size() && line[at++] == ',';
}

LabelledBytes parse(const std::string& path) {
  const FileContent content = read_whole_file(path, 1 << 20);
  const std::string_view text(reinterpret_cast<const char*>(content.bytes.data()),
                              content.bytes.size());
  const std::string unpacked = content.unpacked ? " (offset in the unpacked text)" : "";
  auto fail = [&](size_t offset, const std::string& what) {
    return DataError(path, static_cast<int64_t>(offset), what + unpacked);
  };
  LabelledBytes data{kSide, kSide, 1, {}, {}};
  data.pixels.reserve(kRows * kPixels);
  data.labels.reserve(kRows);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    size_t at = 0;
    for (size_t field = 0; field <= kPixels; ++field) {
      const bool last = field == kPixels;
      uint8_t number = 0;
      if (!take_number(line, at, last ? kClasses - 1 : kTop, last, number)) {
        throw fail(begin, "line " + std::to_string(data.labels.size() + 1) + ", field " +
                              std::to_string(field + 1) +
                              ": expected 64 values of 0 to 16 and a label of 0 to 9");
      }
      (last ? data.labels : data.pixels).push_back(number);
    }
    begin = end + 1;
  }
  if (data.labels.size() != kRows) {
    throw fail(text.size(), std::to_string(data.labels.size()) + " rows instead of " +
                                std::to_string(kRows));
  }
  return data;
}

}  // namespace

std::unique_ptr<Dataset> open_digits(const std::string& path, Split split,
                                     const ImageOptions& options) {
  LabelledBytes all = parse(path);
  std::vector<size_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), size_t{0});
  constexpr uint64_t kSplitSeed = 0x1797;  // never change: results are compared across versions
  if (split != Split::kAll) shuffle(rows, CounterRandom(kSplitSeed, RandomStream::kSplit, 0));
  if (split == Split::kTrain) rows.resize(kTrainRows);
  if (split == Split::kTest) rows.erase(rows.begin(), rows.begin() + kTrainRows);

  LabelledBytes part{kSide, kSide, 1, {}, {}};
  part.pixels.reserve(rows.size() * kPixels);
  part.labels.reserve(rows.size());
  for (size_t row : rows) {
    const auto pixels = std::span(all.pixels).subspan(row * kPixels, kPixels);
    part.pixels.insert(part.pixels.end(), pixels.begin(), pixels.end());
    part.labels.push_back(all.labels[row]);
  }
  return std::make_unique<MemoryImages>("digits", split, std::move(part), kClasses,
                                        PixelScale{kTop, {kMean}, {kDeviation}}, options, 0);
}

}  // namespace tidemark

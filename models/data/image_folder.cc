#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "models/data/dataset.h"
#include "models/data/image.h"
#include "models/data/memory_images.h"
#include "models/data/random.h"

namespace tidemark {
namespace {

namespace fs = std::filesystem;

struct Entry {
  std::string path;
  int64_t label;
};

bool hidden(const fs::path& path) { return path.filename().string().starts_with("."); }

bool is_image_name(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return !hidden(path) && (ending == ".jpg" || ending == ".jpeg" || ending == ".png");
}

std::vector<std::string> class_names(const fs::path& dir) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) {
    if (entry.is_directory() && !hidden(entry.path())) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Where the folders of the classes are, and where the test split is, if it has a folder.
struct Layout {
  fs::path classes;
  std::optional<fs::path> test;
};

Layout layout_of(const fs::path& root) {
  const fs::path train = root / "train";
  if (fs::is_directory(train)) {
    for (const char* test : {"val", "test"}) {
      if (fs::is_directory(root / test)) return {train, root / test};
    }
  }
  const std::vector<std::string> names = class_names(root);
  if (names == std::vector<std::string>{"train"} && !class_names(train).empty()) {
    return {train, std::nullopt};
  }
  const auto is_split = [](const std::string& name) {
    return name == "train" || name == "val" || name == "valid" || name == "validation" ||
           name == "test";
  };
  if (!names.empty() && std::all_of(names.begin(), names.end(), is_split)) {
    std::string found;
    for (const std::string& name : names) found += (found.empty() ? "" : ", ") + name + "/";
    throw DataError(root.string(),
                    "holds " + found +
                        ", which are not classes; expected class folders, or class folders in "
                        "train/ and, if present, in val/ or test/");
  }
  return {root, std::nullopt};
}

std::vector<std::string> image_files(const fs::path& dir) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file() && is_image_name(entry.path())) {
      files.push_back(entry.path().string());
    }
  }
  if (files.empty()) throw DataError(dir.string(), "no JPEG or PNG files in this class folder");
  std::sort(files.begin(), files.end());
  return files;
}

// The files of a class that belong to the split. A tenth is for tests: at least one, if there
// are two files.
std::vector<std::string> choose(std::vector<std::string> files, Split split, int64_t label) {
  constexpr uint64_t kSplitSeed = 0x90;  // never change: results are compared across versions
  if (split == Split::kAll) return files;
  shuffle(files, CounterRandom(kSplitSeed, RandomStream::kSplit, static_cast<uint64_t>(label)));
  const size_t n = files.size();
  const auto test = static_cast<int64_t>(n >= 2 ? std::max<size_t>(1, n / 10) : 0);
  const auto cut = files.end() - test;
  std::vector<std::string> part =
      split == Split::kTest ? std::vector(cut, files.end()) : std::vector(files.begin(), cut);
  std::sort(part.begin(), part.end());
  return part;
}

void add_classes(const fs::path& dir, const std::map<std::string, int64_t>& labels, Split split,
                 std::vector<Entry>& entries) {
  for (const std::string& name : class_names(dir)) {
    const auto found = labels.find(name);
    if (found == labels.end()) {
      throw DataError((dir / name).string(), "is not a class of the training folder");
    }
    for (std::string& file : choose(image_files(dir / name), split, found->second)) {
      entries.push_back({std::move(file), found->second});
    }
  }
}

struct Crop {
  double y, x, height, width;
  bool mirror = false;
};

// torchvision's RandomResizedCrop: up to ten tries for a box inside the image, or else the
// largest centred box with an allowed aspect ratio.
Crop random_crop(int64_t height, int64_t width, CounterRandom& random) {
  const double h = static_cast<double>(height), w = static_cast<double>(width);
  const double log_aspect = std::log(4.0 / 3.0);
  Crop crop{0, 0, h, w};
  bool found = false;
  for (int attempt = 0; attempt < 10 && !found; ++attempt) {
    const double area = h * w * random.uniform(0.08f, 1.0f);
    const double aspect = std::exp(log_aspect * random.uniform(-1.0f, 1.0f));
    const auto box_w = std::llround(std::sqrt(area * aspect));
    const auto box_h = std::llround(std::sqrt(area / aspect));
    if (box_w < 1 || box_h < 1 || box_w > width || box_h > height) continue;
    const auto y = random.below(static_cast<uint64_t>(height - box_h + 1));
    const auto x = random.below(static_cast<uint64_t>(width - box_w + 1));
    crop = {static_cast<double>(y), static_cast<double>(x), static_cast<double>(box_h),
            static_cast<double>(box_w)};
    found = true;
  }
  if (!found) {
    crop.width = std::min(w, h * 4.0 / 3.0);
    crop.height = std::min(h, w * 4.0 / 3.0);
    crop.x = (w - crop.width) / 2;
    crop.y = (h - crop.height) / 2;
  }
  crop.mirror = random.below(2) == 1;
  return crop;
}

// Resizing the shorter side to `resize` and cutting `size` from the centre, as one box.
Crop centre_crop(int64_t height, int64_t width, int64_t size, int64_t resize) {
  const double side = static_cast<double>(std::min(height, width)) * static_cast<double>(size) /
                      static_cast<double>(resize);
  return {(static_cast<double>(height) - side) / 2, (static_cast<double>(width) - side) / 2,
          side, side};
}

class ImageFolder : public Dataset {
 public:
  ImageFolder(std::string dir, Split split, FolderOptions options, int64_t classes,
              std::vector<Entry> entries)
      : dir_(std::move(dir)),
        split_(split),
        options_(options),
        classes_(classes),
        entries_(std::move(entries)) {
    int64_t decode = 0, tallest = 0, longest = 0;
    for (const Entry& entry : entries_) {
      const ImageInfo info = check_image(entry.path, options_.max_pixels);
      decode = std::max(decode, info.decode_bytes.count());
      tallest = std::max(tallest, info.height);
      longest = std::max({longest, info.height, info.width});
    }
    // The strip of resample(), the samples before the change of channels, and both axes'
    // weights.
    const int64_t size = options_.image_size;
    scratch_ = Bytes(decode + 4 * tallest * size * 3 + 4 * size * size * 3 +
                     2 * (16 * longest + 64 * size));
  }

  int64_t size() const override { return static_cast<int64_t>(entries_.size()); }
  int64_t classes() const override { return classes_; }
  Shape sample_shape() const override {
    return {options_.image_size, options_.image_size, options_.channels};
  }
  std::string name() const override { return "folder"; }
  std::string description() const override {
    return "folder " + dir_ + ", " + to_string(split_) + ": " + std::to_string(size()) +
           " images resized to " + sample_shape().to_string() + ", " +
           std::to_string(classes_) + " classes";
  }
  Bytes resident_bytes() const override {
    int64_t bytes = static_cast<int64_t>(entries_.capacity() * sizeof(Entry));
    for (const Entry& entry : entries_)
      bytes += static_cast<int64_t>(entry.path.capacity()) + 1;
    return Bytes(bytes);
  }
  Bytes scratch_bytes() const override { return scratch_; }

  void read(int64_t index, uint64_t epoch_seed, std::span<float> pixels,
            int64_t& label) const override {
    const Entry& entry = entries_[static_cast<size_t>(index)];
    const Image image = decode_image(entry.path, options_.max_pixels);
    Crop crop;
    if (options_.augment && split_ == Split::kTrain) {
      CounterRandom random(epoch_seed, RandomStream::kAugment, static_cast<uint64_t>(index));
      crop = random_crop(image.height, image.width, random);
    } else {
      crop = centre_crop(image.height, image.width, options_.image_size, options_.resize);
    }
    const int64_t size = options_.image_size;
    const ResampleAxis rows(image.height, crop.y, crop.height, size);
    const ResampleAxis columns(image.width, crop.x, crop.width, size, crop.mirror);
    const auto area = static_cast<size_t>(size * size * image.channels);
    std::vector<float> wide(area > pixels.size() ? area : 0);
    const std::span<float> native = wide.empty() ? pixels.last(area) : std::span<float>(wide);
    resample(image.pixels, image.width, image.channels, rows, columns, native);
    convert_channels(native, image.channels, pixels, options_.channels);
    normalise(pixels, options_.channels == 3 ? kColour : kGrey);
    label = entry.label;
  }

 private:
  // Statistics of ImageNet's training images; for grey, their mean over the channels.
  inline static const PixelScale kColour{
      255, {0.485f, 0.456f, 0.406f}, {0.229f, 0.224f, 0.225f}};
  inline static const PixelScale kGrey{255, {0.449f}, {0.226f}};

  std::string dir_;
  Split split_;
  FolderOptions options_;
  int64_t classes_;
  std::vector<Entry> entries_;
  Bytes scratch_;
};

}  // namespace

std::unique_ptr<Dataset> open_image_folder(const std::string& dir, Split split,
                                           const FolderOptions& options) {
  FolderOptions chosen = options;
  check_channels(chosen.channels);
  if (chosen.image_size <= 0 || chosen.image_size > 16384) {
    throw UsageError("an image size of " + std::to_string(chosen.image_size) +
                     " is out of range");
  }
  if (chosen.resize == 0) chosen.resize = (chosen.image_size * 8 + 6) / 7;
  if (chosen.resize < chosen.image_size) {
    throw UsageError("resize (" + std::to_string(chosen.resize) +
                     ") must be at least the image size (" + std::to_string(chosen.image_size) +
                     ")");
  }
  std::vector<Entry> entries;
  std::map<std::string, int64_t> labels;
  try {
    const fs::path root(dir);
    if (!fs::is_directory(root)) throw DataError(dir, "not a folder");
    const Layout layout = layout_of(root);
    for (const std::string& name : class_names(layout.classes)) {
      labels.emplace(name, static_cast<int64_t>(labels.size()));
    }
    if (labels.empty()) throw DataError(layout.classes.string(), "no class folders");
    if (!layout.test) {
      add_classes(layout.classes, labels, split, entries);
    } else {
      if (split != Split::kTest) add_classes(layout.classes, labels, Split::kAll, entries);
      if (split != Split::kTrain) add_classes(*layout.test, labels, Split::kAll, entries);
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(error.path1().string(), error.code().message());
  }
  if (entries.empty()) throw DataError(dir, "too few images for a test split");
  const auto classes = static_cast<int64_t>(labels.size());
  return std::make_unique<ImageFolder>(dir, split, chosen, classes, std::move(entries));
}

}  // namespace tidemark

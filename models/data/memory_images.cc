#include "models/data/memory_images.h"

#include <algorithm>
#include <cstring>

#include "models/data/random.h"

namespace tidemark {

void normalise(std::span<float> pixels, const PixelScale& scale) {
  const size_t channels = scale.mean.size();
  for (size_t i = 0; i < pixels.size(); i += channels) {
    for (size_t c = 0; c < channels; ++c) {
      pixels[i + c] = (pixels[i + c] / scale.top - scale.mean[c]) / scale.deviation[c];
    }
  }
}

void convert_channels(std::span<const float> in, int64_t from, std::span<float> out,
                      int64_t to) {
  const size_t pixels = in.size() / static_cast<size_t>(from);
  if (from == to) {
    if (in.data() != out.data()) std::copy(in.begin(), in.end(), out.begin());
  } else if (to == 3) {
    for (size_t i = 0; i < pixels; ++i) {
      const float grey = in[i];
      out[3 * i] = out[3 * i + 1] = out[3 * i + 2] = grey;
    }
  } else {
    for (size_t i = 0; i < pixels; ++i) {
      out[i] = 0.299f * in[3 * i] + 0.587f * in[3 * i + 1] + 0.114f * in[3 * i + 2];
    }
  }
}

void check_channels(int64_t channels) {
  if (channels == 1 || channels == 3) return;
  throw UsageError("images must have 1 or 3 channels, not " + std::to_string(channels));
}

MemoryImages::MemoryImages(std::string name, Split split, LabelledBytes data, int64_t classes,
                           PixelScale scale, const ImageOptions& options, int64_t crop_pad)
    : name_(std::move(name)),
      split_(split),
      data_(std::move(data)),
      classes_(classes),
      scale_(std::move(scale)),
      crop_pad_(crop_pad) {
  if (options.size < 0 || options.size > 65535) {
    throw UsageError("an image size of " + std::to_string(options.size) + " is out of range");
  }
  shape_ = {data_.height, data_.width, data_.channels};
  if (options.channels != 0) {
    check_channels(options.channels);
    shape_[2] = options.channels;
  }
  if (options.size != 0) {
    shape_[0] = shape_[1] = options.size;
    if (options.size != data_.height || options.size != data_.width) {
      rows_.emplace(data_.height, 0, data_.height, options.size);
      columns_.emplace(data_.width, 0, data_.width, options.size);
    }
  }
}

void MemoryImages::augment(std::span<const uint8_t> in, uint64_t epoch_seed, int64_t index,
                           std::span<uint8_t> out) const {
  CounterRandom random(epoch_seed, RandomStream::kAugment, static_cast<uint64_t>(index));
  const auto shifts = static_cast<uint64_t>(2 * crop_pad_ + 1);
  const int64_t dy = static_cast<int64_t>(random.below(shifts)) - crop_pad_;
  const int64_t dx = static_cast<int64_t>(random.below(shifts)) - crop_pad_;
  const bool flip = random.below(2) == 1;
  const int64_t c = data_.channels, w = data_.width;
  std::fill(out.begin(), out.end(), uint8_t{0});
  for (int64_t y = std::max<int64_t>(0, -dy); y < std::min(data_.height, data_.height - dy);
       ++y) {
    for (int64_t x = std::max<int64_t>(0, -dx); x < std::min(w, w - dx); ++x) {
      const int64_t to = flip ? w - 1 - x : x;
      std::memcpy(&out[static_cast<size_t>((y * w + to) * c)],
                  &in[static_cast<size_t>(((y + dy) * w + x + dx) * c)],
                  static_cast<size_t>(c));
    }
  }
}

void MemoryImages::read(int64_t index, uint64_t epoch_seed, std::span<float> pixels,
                        int64_t& label) const {
  const int64_t c = data_.channels;
  const auto source_size = static_cast<size_t>(data_.height * data_.width * c);
  auto source =
      std::span(data_.pixels).subspan(static_cast<size_t>(index) * source_size, source_size);
  std::vector<uint8_t> moved;
  if (crop_pad_ > 0) {
    moved.resize(source_size);
    augment(source, epoch_seed, index, moved);
    source = moved;
  }
  // Before the change of channels, the image lies at the end of `pixels` if it fits.
  const auto area = static_cast<size_t>(shape_[0] * shape_[1] * c);
  std::vector<float> wide(area > pixels.size() ? area : 0);
  const std::span<float> native = wide.empty() ? pixels.last(area) : std::span<float>(wide);
  if (rows_) {
    resample(source, data_.width, c, *rows_, *columns_, native);
  } else {
    std::copy(source.begin(), source.end(), native.begin());
  }
  normalise(native, scale_);
  convert_channels(native, c, pixels, shape_[2]);
  label = data_.labels[static_cast<size_t>(index)];
}

std::string MemoryImages::description() const {
  return name_ + ", " + to_string(split_) + ": " + std::to_string(size()) + " images of " +
         shape_.to_string() + ", " + std::to_string(classes_) + " classes";
}

Bytes MemoryImages::resident_bytes() const {
  return Bytes(static_cast<int64_t>(data_.pixels.capacity() + data_.labels.capacity()));
}

Bytes MemoryImages::scratch_bytes() const {
  const int64_t c = data_.channels;
  const int64_t moved = crop_pad_ > 0 ? data_.height * data_.width * c : 0;
  const int64_t wide = shape_[2] < c ? 4 * shape_[0] * shape_[1] * c : 0;
  const int64_t narrow = rows_ ? 4 * data_.height * shape_[1] * c : 0;
  return Bytes(moved + wide + narrow);
}

}  // namespace tidemark

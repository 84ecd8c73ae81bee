// A set of labelled images to train on, and functions that open one.
//
// Samples are float32, channels last, normalised (about zero mean and unit variance): the
// layout of every activation in Tidemark, so a batch is copied to the device as it is.
//
// Opening checks everything that can be checked without decoding all of it: magic numbers,
// declared counts against file sizes, label ranges, the headers of all images. Errors throw
// DataError with the file and the byte offset, before the first step of training. In a gzipped
// file, the offset of a damaged stream refers to the compressed file, that of bad content to
// the decompressed text (the message says which). Invalid options throw UsageError.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/core/shape.h"
#include "runtime/core/units.h"

namespace tidemark {

// Immutable once opened; every method may be called from any thread at the same time.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual int64_t classes() const = 0;
  virtual Shape sample_shape() const = 0;  // (H, W, C)

  // Writes sample `index` to `pixels` and its class, in [0, classes()), to `label`. Random
  // crops and flips depend on (epoch_seed, index) alone, so a sample is the same whichever
  // thread reads it, and whenever. REQUIRES: 0 <= index < size(), pixels.size() ==
  // sample_shape().elements(). Throws DataError if the file has disappeared or cannot be
  // decoded.
  virtual void read(int64_t index, uint64_t epoch_seed, std::span<float> pixels,
                    int64_t& label) const = 0;

  virtual std::string name() const = 0;         // "digits"
  virtual std::string description() const = 0;  // one line, for people

  // Host memory that the set holds during its lifetime, and the most that one call of read()
  // takes on top. Both count against the host limit.
  virtual Bytes resident_bytes() const = 0;
  virtual Bytes scratch_bytes() const = 0;
};

enum class Split : uint8_t { kTrain, kTest, kAll };

constexpr const char* to_string(Split split) {
  return split == Split::kTrain ? "train" : split == Split::kTest ? "test" : "all";
}

// How small images are converted.
struct ImageOptions {
  int64_t size = 0;      // height and width, resized bilinearly; 0: as in the file
  int64_t channels = 0;  // 1 or 3; 0: as in the file. Grey is repeated, colour becomes luma.
  // CIFAR-10's augmentation, for the training split only: pad by 4, crop at random, flip half
  // of the images. Digits are never augmented: a mirrored 2 is not a digit.
  bool augment = true;
};

// The 1,797 digits of data/digits/digits.csv.gz (or unpacked), (8, 8, 1). A constant seed
// selects 1,437 rows for training and 360 for testing.
std::unique_ptr<Dataset> open_digits(const std::string& path, Split split,
                                     const ImageOptions& options = {});

// The four IDX files {train,t10k}-{images-idx3,labels-idx1}-ubyte in `dir`, optionally with
// .gz; (28, 28, 1). Fashion-MNIST has the same format.
std::unique_ptr<Dataset> open_mnist(const std::string& dir, Split split,
                                    const ImageOptions& options = {});

// data_batch_{1..5}.bin and test_batch.bin in `dir` or `dir`/cifar-10-batches-bin, (32, 32, 3).
// The format declares no count, so a file cut between two records is noticed only because each
// file must hold `records_per_file` of them.
std::unique_ptr<Dataset> open_cifar10(const std::string& dir, Split split,
                                      const ImageOptions& options = {},
                                      int64_t records_per_file = 10000);

struct FolderOptions {
  int64_t image_size = 224;  // height and width of a sample
  int64_t channels = 3;      // 1 or 3
  // Test split: the shorter side is resized to this, then the centre is cut out. At least
  // image_size; 0: image_size * 8 / 7, the usual 256 for 224.
  int64_t resize = 0;
  // Training split: random resized crop (8-100 % of the area, aspect 3/4-4/3) and random flip.
  bool augment = true;
  // Opening rejects images with more pixels: decoding one would take gigabytes.
  int64_t max_pixels = 100'000'000;
};

// A folder of class folders of JPEG and PNG files (.jpg, .jpeg, .png; the content decides the
// format). Labels number the class folders by sorted name. If `dir` has `train/` and `val/` (or
// `test/`), these are the splits, and train/ names the classes. Otherwise, also with `train/`
// alone, a tenth of each class, chosen by a constant seed, is for testing. Any other
// arrangement of folders named like splits throws DataError. Other files, and names that start
// with a dot, are ignored, as are orientation tags and colour profiles; alpha is dropped.
std::unique_ptr<Dataset> open_image_folder(const std::string& dir, Split split,
                                           const FolderOptions& options = {});

// Noise around one coarse pattern per class: needs no file, can be learnt, and depends only on
// the arguments. shape is (H, W, C).
std::unique_ptr<Dataset> make_synthetic(const Shape& shape, int64_t classes, int64_t size,
                                        uint64_t seed);

}  // namespace tidemark

// Scalars over steps as an event file that TensorBoard opens (`tensorboard --logdir FOLDER`).
//
// The format: records of TFRecord (length, masked CRC-32C of it, data, masked CRC-32C of that;
// tensorflow.org/tutorials/load_data/tfrecord), each one protobuf message Event
// (tensorboard/compat/proto/event.proto) with the fields wall_time, step and simple values.
// Each step's record is written and flushed at once, so that a run can be watched and a killed
// run leaves what it had done.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace tidemark {

struct Scalar {
  std::string_view tag;  // "train/loss"; what comes before the slash groups charts
  float value;
};

class TensorBoardWriter {
 public:
  // Makes the folder if there is none, and a new file in it, named after the time, so that runs
  // in one folder do not overwrite each other. Throws DataError.
  explicit TensorBoardWriter(const std::string& folder);

  // Throws DataError if the file cannot be written, as on a full disk.
  void add(int64_t step, std::span<const Scalar> scalars);

  const std::string& path() const { return path_; }

 private:
  void write(std::string_view event);

  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

// CRC-32C (Castagnoli), as in RFC 3720.
uint32_t crc32c(std::string_view bytes);

}  // namespace tidemark

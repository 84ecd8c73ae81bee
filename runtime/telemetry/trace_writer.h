// Writes events as a trace for Perfetto (ui.perfetto.dev) and chrome://tracing:
//
//   compute   |conv2d|relu|  conv2d (recompute) |          X  complete events, args say why
//   offload          |  conv2d offload   |
//   reload                                 | relu reload |
//   policy       'evict       'drop clean                  i  instants
//   steps     |            step 0           |  planning  |
//   arena     ~~~~~~~~~~\____/~~~~~~~~~                    C  bytes in use
//
// The format: "Trace Event Format", timestamps in microseconds on the device's clock. Events on
// no stream (an eviction, a step mark) have no time on that clock. They are shown at the
// compute stream's position: the end of the operator issued before. Unfinished work is left out
// of the rows, but its instants and arena values are shown.
//
// Threads: one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/atomic_file.h"
#include "runtime/telemetry/event_log.h"

namespace tidemark {

struct TraceOptions {
  std::string process = "session";
  std::vector<std::string> rows{"compute", "offload", "reload"};  // by EventRecord::stream
  std::vector<std::string> categories{};  // names by EventRecord::category; else numbers
};

// Streams events to a temporary file beside `path`, and renames it when finished: `path` holds
// either the complete trace or its earlier contents. Symbolic links are followed and kept;
// devices and pipes are written to directly.
class TraceWriter {
 public:
  // Throws DataError if the file cannot be made, or `path` is a folder. An unfinished trace is
  // deleted.
  explicit TraceWriter(const std::string& path, TraceOptions options = {});

  // Call in the order of tags, once each event's times are known. Throws DataError, as on a
  // full disk.
  void write(const EventRecord& event);
  // `dropped`: number of events overwritten in the log before they were written; goes into the
  // metadata. Throws DataError if anything could not be written.
  void finish(uint64_t dropped = 0);

 private:
  void put(std::string_view text);
  void emit(const std::string& event);
  void name_row(size_t row, const std::string& name);
  std::string category_name(uint8_t category) const;

  TraceOptions options_;
  AtomicFile file_;
  std::string buffer_;  // not yet written to the file
  bool first_ = true;
  Nanos compute_;  // the compute stream's position
  std::optional<EventRecord> step_;
  Nanos step_start_;
  std::optional<Bytes> used_;
};

// Writes the whole log at once. Throws DataError.
void write_trace(const EventLog& log, const std::string& path,
                 const TraceOptions& options = {});

}  // namespace tidemark

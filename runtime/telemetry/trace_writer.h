// Events as a trace that Perfetto (ui.perfetto.dev) and chrome://tracing show:
//
//   compute   |conv2d|relu|  conv2d (recompute) |          X  complete events, args say why
//   offload          |  conv2d offload   |
//   reload                                 | relu reload |
//   policy       'evict       'drop clean                  i  instants
//   steps     |            step 0           |  planning  |
//   arena     ~~~~~~~~~~\____/~~~~~~~~~                    C  bytes in use
//
// The format: "Trace Event Format", timestamps in microseconds on the device's clock. What
// happens on no stream (an eviction, a step mark) has no time on that clock: it is shown where
// the compute stream stood, at the end of the operator issued before it. Work that has not
// completed is left out of the rows; the rest of it (instants, arena) is not.
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
  std::vector<std::string> categories{};  // names by EventRecord::category; else the number
};

// Streams events to a file beside `path` and puts it in place when finished: either there is a
// whole trace at `path`, or what was there before. A link is followed, and stays; a device or a
// pipe is written to as it is.
class TraceWriter {
 public:
  // Throws DataError if the file cannot be made, or `path` is a folder. An unfinished trace is
  // removed.
  explicit TraceWriter(const std::string& path, TraceOptions options = {});

  // In the order of tags, each when its times are known. Throws DataError, as on a full disk.
  void write(const EventRecord& event);
  // `dropped`: how many events had left the log before they were written; goes into the
  // metadata. Throws DataError if anything could not be written.
  void finish(uint64_t dropped = 0);

 private:
  void put(std::string_view text);
  void emit(const std::string& event);
  void name_row(size_t row, const std::string& name);
  std::string category_name(uint8_t category) const;

  TraceOptions options_;
  AtomicFile file_;
  std::string buffer_;  // what has yet to go into it
  bool first_ = true;
  Nanos compute_;  // where the compute stream stands
  std::optional<EventRecord> step_;
  Nanos step_start_;
  std::optional<Bytes> used_;
};

// The whole log at once. Throws DataError.
void write_trace(const EventLog& log, const std::string& path,
                 const TraceOptions& options = {});

}  // namespace tidemark

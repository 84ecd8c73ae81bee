#include "runtime/telemetry/trace_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace tidemark {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kProcess = 1;

double us(Nanos time) { return static_cast<double>(time.count()) * 1e-3; }

std::string text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool runs_on_compute(EventKind kind) {
  return kind == EventKind::kOperator || kind == EventKind::kRecompute ||
         kind == EventKind::kCompact;
}

bool is_instant(EventKind kind) {
  return kind == EventKind::kEvict || kind == EventKind::kDropClean ||
         kind == EventKind::kDropCopy || kind == EventKind::kOutOfMemory;
}

}  // namespace

TraceWriter::TraceWriter(const std::string& path, TraceOptions options)
    : options_(std::move(options)), file_(path, AtomicFile::Streams::kWritten) {
  put("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
  emit(text({{"ph", "M"},
             {"name", "process_name"},
             {"pid", kProcess},
             {"args", {{"name", options_.process}}}}));
  for (size_t row = 0; row < options_.rows.size(); ++row) name_row(row, options_.rows[row]);
  name_row(options_.rows.size(), "policy");
  name_row(options_.rows.size() + 1, "steps");
}

void TraceWriter::put(std::string_view text) {
  constexpr size_t kPiece = 1 << 16;
  buffer_ += text;
  if (buffer_.size() < kPiece) return;
  file_.write(buffer_);
  buffer_.clear();
}

void TraceWriter::emit(const std::string& event) {
  put((first_ ? "\n" : ",\n") + event);
  first_ = false;
}

void TraceWriter::name_row(size_t row, const std::string& name) {
  emit(text({{"ph", "M"},
             {"name", "thread_name"},
             {"pid", kProcess},
             {"tid", row},
             {"args", {{"name", name}}}}));
  emit(text({{"ph", "M"},
             {"name", "thread_sort_index"},
             {"pid", kProcess},
             {"tid", row},
             {"args", {{"sort_index", row}}}}));
}

std::string TraceWriter::category_name(uint8_t category) const {
  return category < options_.categories.size() ? options_.categories[category]
                                               : std::to_string(category);
}

void TraceWriter::write(const EventRecord& event) {
  const bool completed = event.end > Nanos(0);
  Nanos at = compute_;
  if (event.kind == EventKind::kStepBegin) {
    step_ = event;
    step_start_ = at;
  } else if (event.kind == EventKind::kStepEnd) {
    if (step_) {
      emit(text({{"ph", "X"},
                 {"name", "step " + std::to_string(step_->storage)},
                 {"cat", "step"},
                 {"pid", kProcess},
                 {"tid", options_.rows.size() + 1},
                 {"ts", us(step_start_)},
                 {"dur", us(at - step_start_)}}));
    }
    step_.reset();
    if (event.expected > Nanos(0)) {
      const Nanos began = std::max(at, event.start - event.expected);
      emit(text({{"ph", "X"},
                 {"name", "planning"},
                 {"cat", "planning"},
                 {"pid", kProcess},
                 {"tid", options_.rows.size() + 1},
                 {"ts", us(began)},
                 {"dur", us(event.start - began)}}));
      compute_ = std::max(compute_, event.start);
    }
  } else if (completed || is_instant(event.kind)) {
    Json args{{"bytes", event.bytes.count()},
              {"reason", to_string(event.reason)},
              {"category", category_name(event.category)},
              {"storage", event.storage},
              {"expected_us", us(event.expected)},
              {"issued_us", us(event.issued)},
              {"tag", event.tag}};
    args["operator"] = event.op;
    const std::string kind(to_string(event.kind));
    if (is_instant(event.kind)) {
      args["name"] = event.name;
      emit(text({{"ph", "i"},
                 {"name", kind},
                 {"cat", kind},
                 {"pid", kProcess},
                 {"tid", options_.rows.size()},
                 {"ts", us(at)},
                 {"s", "t"},
                 {"args", std::move(args)}}));
    } else {
      std::string name = event.name;
      if (event.kind != EventKind::kOperator) name += name.empty() ? kind : " " + kind;
      emit(text({{"ph", "X"},
                 {"name", name},
                 {"cat", kind},
                 {"pid", kProcess},
                 {"tid", std::min<size_t>(event.stream, options_.rows.size())},
                 {"ts", us(event.start)},
                 {"dur", us(event.end - event.start)},
                 {"args", std::move(args)}}));
    }
    if (completed && runs_on_compute(event.kind)) {
      at = std::max(at, event.start);
      compute_ = std::max(compute_, event.end);
    }
  }
  if (event.kind != EventKind::kStepBegin && event.kind != EventKind::kStepEnd &&
      used_ != event.used) {
    used_ = event.used;
    emit(text({{"ph", "C"},
               {"name", "arena"},
               {"pid", kProcess},
               {"ts", us(at)},
               {"args", {{"used", event.used.count()}}}}));
  }
}

void TraceWriter::finish(uint64_t dropped) {
  put("\n],\"metadata\":" + text({{"process", options_.process}, {"dropped_events", dropped}}) +
      "}\n");
  file_.write(std::exchange(buffer_, ""));
  file_.commit();
}

void write_trace(const EventLog& log, const std::string& path, const TraceOptions& options) {
  TraceWriter writer(path, options);
  log.for_each([&](const EventRecord& event) { writer.write(event); });
  writer.finish(log.dropped());
}

}  // namespace tidemark

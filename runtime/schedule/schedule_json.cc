#include "runtime/schedule/schedule_json.h"

#include <array>
#include <utility>

#include "runtime/core/located_json.h"
#include "runtime/schedule/json_fields.h"
#include "runtime/schedule/trace_json.h"

namespace tidemark {
namespace {

using json_fields::Fields;
using json_fields::Json;
using Block = Schedule::Block;
using Instruction = Schedule::Instruction;

constexpr const char* kScheduleFormat = "tidemark schedule";
constexpr int kScheduleVersion = 1;
constexpr std::array<const char*, 10> kDo{"run",       "upload",   "read",    "free",
                                          "evict",     "copy_out", "offload", "copy_in",
                                          "drop_copy", "move"};
static_assert(static_cast<size_t>(Schedule::Do::kMove) + 1 == kDo.size());

bool is_op(const Instruction& it) {
  return static_cast<uint8_t>(it.what) <= static_cast<uint8_t>(Schedule::Do::kRead);
}

class Writer {
 public:
  Writer(const StepTrace& trace, const Schedule& schedule) : trace_(trace), s_(schedule) {}

  std::string run() {
    Json head{{"format", kScheduleFormat}, {"version", kScheduleVersion}};
    if (!s_.method.empty()) head["method"] = s_.method;
    if (s_.placed) head["placed"] = true;
    if (s_.residents_apart) head["residents_apart"] = true;
    const auto number = [&](const char* key, int64_t value) {
      if (value != 0) head[key] = value;
    };
    number("peak", s_.peak.count());
    number("peak_bound", s_.peak_bound.count());
    number("moved", s_.moved.count());
    number("shortfall", s_.shortfall.count());
    number("time_ns", s_.time.count());
    number("recomputed_ns", s_.recomputed.count());
    number("ample_time_ns", s_.ample_time.count());
    number("time_bound_ns", s_.time_bound.count());
    number("any_order_bound_ns", s_.any_order_bound.count());
    number("initial_blocks", s_.initial_blocks);
    for (const Bytes size : s_.foreign) head["foreign"].push_back(size.count());
    std::string text = head.dump(1, ' ', false, Json::error_handler_t::replace);
    text.resize(text.size() - 2);  // without the end, "\n}"
    std::string trace = to_json(trace_);
    trace.pop_back();
    text += ",\n \"trace\": " + trace;
    next_ = s_.initial_blocks;
    json_fields::append_lines(text, "code", s_.code,
                              [&](const Instruction& i) { return line(i); });
    json_fields::append_lines(text, "blocks", s_.blocks,
                              [&](const Block& b) { return line(b); });
    return text + "}\n";
  }

 private:
  std::string name(uint32_t storage) const {
    return storage < trace_.storages.size() ? std::string(trace_.storages[storage].label())
                                            : "foreign";
  }
  Json line(const Instruction& it) {
    Json line{{"do", kDo[static_cast<size_t>(it.what)]}};
    line[is_op(it) ? "op" : "storage"] = it.subject;
    line["name"] = is_op(it) ? std::string(trace_.ops[it.subject].label()) : name(it.subject);
    if (it.again) line["again"] = true;
    if (it.in_place()) line["overwrites"] = it.overwrites;
    if (it.variant != 0) line["variant"] = it.variant;
    if (it.blocks != 0 || it.first_block != next_) {
      line["blocks"] = {it.first_block, it.blocks};
      next_ = it.first_block + it.blocks;
    }
    return line;
  }
  Json line(const Block& block) const {
    Json line;
    if (block.storage != Schedule::kScratch) line["storage"] = block.storage;
    line["name"] = block.storage != Schedule::kScratch ? name(block.storage) : "scratch";
    line["size"] = block.size.count();
    line["begin"] = block.begin;
    line["end"] = block.end;
    if (block.at != Offset(0)) line["at"] = block.at.value();
    return line;
  }

  const StepTrace& trace_;
  const Schedule& s_;
  uint32_t next_ = 0;  // the block after those of the last instruction that takes some
};

class ScheduleReader {
 public:
  ScheduleReader(const Json& json, const std::string& source)
      : json_(json), source_(source), head_(json, source, "") {}

  SavedSchedule run() {
    json_fields::check_format(json_, source_, "a schedule", kScheduleFormat, kScheduleVersion);
    const Json* trace = head_.find("trace");
    if (!trace || !trace->is_object()) head_.fail("trace", "not an object");
    saved_.trace = json_fields::read_trace(*trace, source_, "trace");
    if (head_.find("method")) s_.method = head_.text("method");
    s_.placed = head_.flag("placed");
    s_.residents_apart = head_.flag("residents_apart");
    s_.peak = bytes(head_, "peak");
    s_.peak_bound = bytes(head_, "peak_bound");
    s_.moved = bytes(head_, "moved");
    s_.shortfall = bytes(head_, "shortfall");
    s_.time = time(head_, "time_ns");
    s_.recomputed = time(head_, "recomputed_ns");
    s_.ample_time = time(head_, "ample_time_ns");
    s_.time_bound = time(head_, "time_bound_ns");
    s_.any_order_bound = time(head_, "any_order_bound_ns");
    s_.initial_blocks = head_.id("initial_blocks");
    for (const int64_t size : head_.numbers("foreign")) {
      add(head_, "foreign", size);
      s_.foreign.emplace_back(size);
    }
    storages_ = saved_.trace.storages.size() + s_.foreign.size();
    next_ = s_.initial_blocks;
    head_.each("code", [&](const Fields& line) { s_.code.push_back(instruction(line)); });
    head_.each("blocks", [&](const Fields& line) { s_.blocks.push_back(block(line)); });
    check_ranges();
    return std::move(saved_);
  }

 private:
  Instruction instruction(const Fields& line) {
    Instruction it;
    it.what = static_cast<Schedule::Do>(line.choice("do", kDo, "no such instruction"));
    const char* key = is_op(it) ? "op" : "storage";
    if (!line.find(key)) line.fail(key, "is missing");
    it.subject = line.id(key);
    const size_t most = is_op(it) ? saved_.trace.ops.size() : storages_;
    if (it.subject >= most) line.fail(key, "there are only " + std::to_string(most));
    it.again = line.flag("again");
    if (line.find("overwrites")) {
      it.overwrites = line.id("overwrites");
      if (it.overwrites >= storages_)
        line.fail("overwrites", "there are only " + std::to_string(storages_));
    }
    it.variant = line.id("variant");
    const size_t variants = is_op(it) ? saved_.trace.ops[it.subject].variants.size() : 0;
    if (it.variant > variants)
      line.fail("variant", "there are only " + std::to_string(variants));
    it.first_block = next_;
    if (line.find("blocks")) {
      const std::vector<uint32_t> range = line.ids("blocks");
      if (range.size() != 2) line.fail("blocks", "must be [first, count]");
      it.first_block = range[0];
      it.blocks = range[1];
      if (uint64_t{range[0]} + range[1] > UINT32_MAX) line.fail("blocks", "no such blocks");
      next_ = range[0] + range[1];
    }
    return it;
  }
  Block block(const Fields& line) {
    Block block;
    if (line.find("storage")) {
      block.storage = line.id("storage");
      if (block.storage >= storages_)
        line.fail("storage", "there are only " + std::to_string(storages_));
    }
    block.size = bytes(line, "size");
    add(line, "size", block.size.count());
    block.begin = line.id("begin");
    block.end = line.id("end");
    if (block.begin > block.end || block.end > s_.code.size()) {
      line.fail("end", "the code has no such range");
    }
    block.at = Offset(bytes(line, "at").count());
    return block;
  }

  void check_ranges() const {
    if (s_.initial_blocks > s_.blocks.size())
      head_.fail("initial_blocks",
                 "there are only " + std::to_string(s_.blocks.size()) + " blocks");
    for (uint32_t b = 0; b < s_.initial_blocks; ++b) {
      if (s_.blocks[b].storage == Schedule::kScratch) {
        head_.fail("blocks[" + std::to_string(b) + "]",
                   "an initial block must belong to a storage");
      }
    }
    for (size_t i = 0; i < s_.code.size(); ++i) {
      if (s_.code[i].first_block + s_.code[i].blocks > s_.blocks.size()) {
        head_.fail("code[" + std::to_string(i) + "].blocks", "no such blocks");
      }
    }
  }
  static Bytes bytes(const Fields& line, const char* key) {
    const int64_t size = line.number(key);
    if (size < 0 || size > kTooManyBytes) line.fail(key, "not a number of bytes");
    return Bytes(size);
  }
  static Nanos time(const Fields& line, const char* key) {
    const int64_t nanos = line.number(key);
    if (nanos < 0) line.fail(key, "a time cannot be negative");
    return Nanos(nanos);
  }
  // Bounds sizes so that their sums do not overflow.
  void add(const Fields& line, const char* key, int64_t size) {
    if (size < 0 || size > kTooManyBytes - sum_)
      line.fail(key, "the sum of the sizes is too large");
    sum_ += size;
  }

  const Json& json_;
  const std::string& source_;
  const Fields head_;
  SavedSchedule saved_;
  Schedule& s_ = saved_.schedule;
  size_t storages_ = 0;
  uint32_t next_ = 0;
  int64_t sum_ = 0;
};

}  // namespace

std::string to_json(const StepTrace& trace, const Schedule& schedule) {
  return Writer(trace, schedule).run();
}

SavedSchedule schedule_from_json(std::string_view text, const std::string& source) {
  const Json json = parse_located<Json>(source, text);
  return ScheduleReader(json, source).run();
}

}  // namespace tidemark

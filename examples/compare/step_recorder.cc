#include "examples/compare/step_recorder.h"

#include <algorithm>
#include <utility>

#include "runtime/tensor/recipe.h"

namespace tidemark::compare {

std::string_view to_string(Ending ending) {
  switch (ending) {
    case Ending::kStays: return "stays";
    case Ending::kUnused: return "not used any more";
    case Ending::kEvicted: return "evicted";
    case Ending::kOffloaded: return "offloaded";
    case Ending::kDropped: return "released, with a copy kept";
    case Ending::kMoved: return "moved";
  }
  return "";
}

namespace {

// What is there before any operator is not of the one that came after it. Null: made by one.
const char* lasting_name(Category category) {
  switch (category) {
    case Category::kParameter: return "parameter";
    case Category::kOptimizerState: return "optimizer state";
    case Category::kBuffer: return "buffer";
    case Category::kData: return "batch";
    case Category::kGradient:
    case Category::kActivation:
    case Category::kWorkspace: break;
  }
  return nullptr;
}

const char* name_of(Category category, const char* made_by) {
  const char* lasting = lasting_name(category);
  return lasting ? lasting : made_by;
}

}  // namespace

std::vector<CurvePoint> thin_out(const std::vector<CurvePoint>& curve, size_t most) {
  if (curve.size() <= most || most < 4) return curve;
  const size_t buckets = most / 2 - 1;
  std::vector<CurvePoint> thin{curve.front()};
  const auto less = [](const CurvePoint& a, const CurvePoint& b) { return a.used < b.used; };
  for (size_t i = 0; i < buckets; ++i) {
    const auto first = curve.begin() + static_cast<int64_t>(i * curve.size() / buckets);
    const auto last = curve.begin() + static_cast<int64_t>((i + 1) * curve.size() / buckets);
    auto [low, high] = std::minmax_element(first, last, less);
    if (low > high) std::swap(low, high);
    thin.push_back(*low);
    if (high != low) thin.push_back(*high);
  }
  thin.push_back(curve.back());
  return thin;
}

// --- RecordingArena ---

void RecordingArena::note(bool placed, const Block& block, Category category) {
  if (log_) notes_.push_back({log_->next_tag(), placed, block, category});
}

std::optional<Allocation> RecordingArena::allocate(Bytes size, Category category) {
  if (log_ && offsets().unused() > Bytes(0)) {
    holes_ += 1 - static_cast<double>(offsets().largest_hole().count()) /
                      static_cast<double>(offsets().unused().count());
    ++asked_;
  }
  const auto place = Arena::allocate(size, category);
  if (place) note(true, place->block, category);
  return place;
}

std::optional<Allocation> RecordingArena::allocate_at(Offset offset, Bytes size,
                                                      Category category) {
  const auto place = Arena::allocate_at(offset, size, category);
  const bool was_refused = std::exchange(refused_, !place);
  if (!place) return place;
  // A move that was refused puts the block back where it was: then nothing happened.
  const bool back = was_refused && log_ && !notes_.empty() && !notes_.back().placed &&
                    notes_.back().block == place->block &&
                    notes_.back().tag == log_->next_tag();
  if (back) {
    notes_.pop_back();
  } else {
    note(true, place->block, category);
  }
  return place;
}

void RecordingArena::free(const Block& block, Category category, const Fence& last_use) {
  Arena::free(block, category, last_use);
  refused_ = false;
  note(false, block, category);
}

double RecordingArena::take_fragmentation() {
  const double mean = asked_ > 0 ? holes_ / static_cast<double>(asked_) : 0;
  holes_ = 0;
  asked_ = 0;
  return mean;
}

// --- StepRecorder ---

StepRecorder::StepRecorder(Session& session, RecordingArena& arena)
    : session_(session), arena_(arena), next_tag_(session.events().next_tag()) {
  arena_.follow(&session.events());
  session_.set_observer([this](std::string_view /*name*/, const Recipe& recipe) {
    Call& call = calls_.emplace_back();
    call.tag = session_.events().next_tag();
    for (const Recipe::Input& input : recipe.inputs) call.inputs.push_back(input.storage->id());
    for (const Recipe::Output& output : recipe.outputs) {
      const Storage& made = *output.storage;
      call.outputs.push_back({made.id(), made.size(), made.category});
    }
  });
}

StepRecorder::~StepRecorder() {
  session_.set_observer({});
  arena_.follow(nullptr);
}

StepPicture StepRecorder::take() {
  picture_ = {};
  picture_.capacity = arena_.offsets().capacity();
  picture_.fragmentation = arena_.take_fragmentation();
  const std::vector<RecordingArena::Note> notes = arena_.take();
  size_t next_note = 0;
  const EventLog& log = session_.events();
  for (; next_tag_ < log.next_tag(); ++next_tag_) {
    while (next_note < notes.size() && notes[next_note].tag <= next_tag_) {
      take_note(notes[next_note++]);
    }
    const EventRecord* event = log.find(next_tag_);
    picture_.incomplete = picture_.incomplete || event == nullptr;
    if (event) take_event(*event);
  }
  while (next_note < notes.size()) take_note(notes[next_note++]);
  calls_.clear();

  picture_.duration = step_end_ - step_begin_;
  const auto add = [&](PlacedBlock block) {
    block.from_before = block.from < step_begin_;
    block.from = std::clamp(block.from, step_begin_, step_end_) - step_begin_;
    block.to = std::clamp(block.to, step_begin_, step_end_) - step_begin_;
    picture_.blocks.push_back(block);
  };
  for (const PlacedBlock& block : ended_) add(block);
  ended_.clear();
  for (auto& [offset, live] : live_) {
    live.block.to = step_end_;
    live.block.age = age_of(live.block.storage);
    add(live.block);
  }
  std::stable_sort(picture_.blocks.begin(), picture_.blocks.end(),
                   [](const PlacedBlock& a, const PlacedBlock& b) { return a.from < b.from; });
  for (CurvePoint& point : picture_.curve) {
    point.time = std::clamp(point.time - step_begin_, Nanos(0), picture_.duration);
  }
  used_ = arena_.offsets().used();
  picture_.curve.push_back({picture_.duration, used_});
  picture_.curve = thin_out(picture_.curve, kCurvePoints);
  for (Decision& decision : picture_.decisions) decision.time -= step_begin_;
  if (picture_.decisions.size() > kDecisionsKept) {
    picture_.decisions.erase(picture_.decisions.begin(),
                             picture_.decisions.end() - static_cast<int64_t>(kDecisionsKept));
  }
  forget_old();
  return std::exchange(picture_, {});
}

void StepRecorder::take_note(const RecordingArena::Note& note) {
  freed_.reset();
  if (note.placed) {
    offload_.reset();
    Live live;
    live.block.offset = note.block.offset;
    live.block.bytes = note.block.size;
    live.block.category = note.category;
    live.block.from = now_;
    live.block.name = name_of(note.category, "");
    live_[note.block.offset] = live;
    pending_.push_back(note.block.offset);
    return;
  }
  if (offload_ && offload_->bytes == note.block.size) {
    end_block(note.block.offset, Ending::kOffloaded);
    identify_last(*offload_);
  } else {
    // An eviction, a clean drop or a move may say so just after.
    end_block(note.block.offset, Ending::kUnused);
    freed_ = note;
  }
  offload_.reset();
}

void StepRecorder::end_block(Offset offset, Ending ending) {
  const auto at = live_.find(offset);
  if (at == live_.end()) return;
  PlacedBlock& block = at->second.block;
  block.to = now_;
  block.ending = ending;
  block.age = age_of(block.storage);
  ended_.push_back(block);
  std::erase(pending_, offset);
  live_.erase(at);
}

// Events know whose block it was that ended last.
void StepRecorder::identify_last(const EventRecord& event) {
  if (ended_.empty()) return;
  PlacedBlock& block = ended_.back();
  block.storage = event.storage;
  block.name = name_of(block.category, event.name);
  block.reason = event.reason;
  block.age = age_of(event.storage);
}

void StepRecorder::take_event(const EventRecord& event) {
  const Nanos before = now_;
  const bool computes = event.kind == EventKind::kOperator ||
                        event.kind == EventKind::kRecompute ||
                        event.kind == EventKind::kCompact;
  const Call* call = nullptr;
  switch (event.kind) {
    case EventKind::kStepBegin:
      // What was issued before it may still run, as what sets up the program before its first.
      step_begin_ = event.start;
      now_ = std::max(now_, event.start);
      ended_.clear();  // what went before is not of the step
      freed_.reset();
      offload_.reset();
      picture_.curve = {{step_begin_, used_}};
      picture_.decisions.clear();
      picture_.decisions_made = 0;
      return;
    case EventKind::kStepEnd: step_end_ = now_ = std::max(now_, event.start); return;
    case EventKind::kOperator:
      // The call that was dispatched last before this event.
      while (calls_.size() > 1 && calls_[1].tag <= event.tag) calls_.pop_front();
      if (!calls_.empty() && calls_.front().tag <= event.tag) call = &calls_.front();
      break;
    default: break;
  }
  if (computes && event.start > before) now_ = event.start;
  used_ = event.used;
  picture_.curve.push_back({now_, used_});

  switch (event.kind) {
    case EventKind::kOperator:
    case EventKind::kRecompute: name_pending(event, call); break;
    case EventKind::kReload:
    case EventKind::kPrefetch: name_last(event); break;
    case EventKind::kEvict:
    case EventKind::kDropClean:
      if (freed_ && freed_->block.size == event.bytes && !ended_.empty()) {
        ended_.back().ending =
            event.kind == EventKind::kEvict ? Ending::kEvicted : Ending::kDropped;
        identify_last(event);
      }
      break;
    case EventKind::kCompact:
      // Freed, placed, and then this event: `pending_` ends with the new place.
      name_last(event);
      if (!ended_.empty() && ended_.back().bytes == event.bytes && ended_.back().to == before) {
        ended_.back().ending = Ending::kMoved;
        identify_last(event);
        moved_.push_back(event.storage);
      }
      break;
    default: break;
  }
  freed_.reset();
  offload_.reset();
  if (event.kind == EventKind::kOffload) offload_ = event;
  decide(event);
  if (!computes) return;
  if (event.end > now_) now_ = event.end;
  if (event.kind != EventKind::kCompact) used_now(event, call);
}

// An operator has been issued: what was placed since the last event is its own, but for what
// was uploaded.
void StepRecorder::name_pending(const EventRecord& event, const Call* call) {
  // One that was moved before its operator was issued has its name already.
  std::vector<uint32_t> named = std::exchange(moved_, {});
  const auto output_for = [&](const PlacedBlock& block) -> uint32_t {
    for (const Output& output : call->outputs) {
      if (output.category != block.category || output.bytes != block.bytes) continue;
      if (std::find(named.begin(), named.end(), output.storage) != named.end()) continue;
      named.push_back(output.storage);
      return output.storage;
    }
    return 0;
  };
  bool recomputed = call == nullptr;
  for (const Offset offset : std::exchange(pending_, {})) {
    PlacedBlock& block = live_.at(offset).block;
    block.from = now_;
    block.name = name_of(block.category, event.name);
    if (block.category == Category::kWorkspace) continue;
    if (call) {
      block.storage = output_for(block);
    } else if (recomputed && !lasting_name(block.category)) {
      block.storage = event.storage;
      recomputed = false;
    }
  }
}

// The block that was placed last is the storage's that the event is about.
void StepRecorder::name_last(const EventRecord& event) {
  for (size_t i = pending_.size(); i-- > 0;) {
    PlacedBlock& block = live_.at(pending_[i]).block;
    if (block.bytes != event.bytes) continue;
    block.name = name_of(block.category, event.name);
    block.storage = event.storage;
    pending_.erase(pending_.begin() + static_cast<int64_t>(i));
    return;
  }
}

StepRecorder::Known& StepRecorder::known(uint32_t storage) {
  Known& known = known_[storage];
  known.seen = takes_;
  return known;
}

void StepRecorder::used_now(const EventRecord& event, const Call* call) {
  if (call) {
    for (const uint32_t storage : call->inputs) known(storage).used = now_;
    for (const Output& made : call->outputs) {
      Known& output = known(made.storage);
      output.used = now_;
      output.cost = event.expected;
      output.inputs = call->inputs;
    }
  } else if (const auto at = known_.find(event.storage); at != known_.end()) {
    at->second.used = now_;
    for (const uint32_t storage : std::vector(at->second.inputs)) known(storage).used = now_;
  }
}

Nanos StepRecorder::age_of(uint32_t storage) const {
  const auto at = known_.find(storage);
  return at == known_.end() ? Nanos(0) : std::max(Nanos(0), now_ - at->second.used);
}

void StepRecorder::decide(const EventRecord& event) {
  switch (event.kind) {
    case EventKind::kEvict:
    case EventKind::kOffload:
    case EventKind::kCopyOut:
    case EventKind::kDropClean:
    case EventKind::kGiveUpCopy: break;
    default: return;
  }
  ++picture_.decisions_made;
  const auto made = known_.find(event.storage);
  const bool computed = event.kind == EventKind::kEvict || event.kind == EventKind::kGiveUpCopy;
  picture_.decisions.push_back({.time = now_,
                                .kind = event.kind,
                                .reason = event.reason,
                                .name = event.name,
                                .storage = event.storage,
                                .category = static_cast<Category>(event.category),
                                .bytes = event.bytes,
                                .age = age_of(event.storage),
                                .cost = !computed              ? event.expected
                                        : made != known_.end() ? made->second.cost
                                                               : Nanos(0)});
}

// Storages that no call has named for some steps are gone, or as good as.
void StepRecorder::forget_old() {
  constexpr uint64_t kSteps = 3;
  ++takes_;
  std::erase_if(known_, [&](const auto& entry) { return entry.second.seen + kSteps < takes_; });
}

}  // namespace tidemark::compare

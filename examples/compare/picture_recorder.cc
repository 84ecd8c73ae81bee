#include "examples/compare/picture_recorder.h"
#include "runtime/residency/residency.h"

#include <algorithm>
#include <utility>

namespace tidemark::compare {

std::string_view to_string(Ending ending) {
  switch (ending) {
    case Ending::kStays: return "stays";
    case Ending::kUnused: return "no longer used";
    case Ending::kEvicted: return "evicted";
    case Ending::kOffloaded: return "offloaded";
    case Ending::kDropped: return "released, with a copy kept";
    case Ending::kMoved: return "moved";
  }
  return "";
}

namespace {

// Storages that live from step to step belong to no operator.
const char* name_of(const Storage& storage) {
  switch (storage.category) {
    case Category::kParameter: return "parameter";
    case Category::kOptimizerState: return "optimizer state";
    case Category::kBuffer: return "buffer";
    case Category::kData: return "batch";
    case Category::kGradient:
    case Category::kActivation:
    case Category::kWorkspace: break;
  }
  return storage.name;
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

PictureRecorder::PictureRecorder(Session& session)
    : session_(session), next_tag_(session.events().next_tag()) {
  session.residency().storage_events().listen(*this);
}

PictureRecorder::~PictureRecorder() { session_.residency().storage_events().ignore(*this); }

void PictureRecorder::on_event(const StorageEvent& event) noexcept {
  if (!event.storage) return;
  const Storage& storage = *event.storage;
  Told& told = told_.emplace_back();
  told.kind = event.kind;
  told.reason = event.reason;
  told.tag = session_.events().next_tag();
  told.block.offset = offset_of(storage).value_or(Offset(0));
  told.block.bytes = storage.size();
  told.block.category = storage.category;
  told.block.name = name_of(storage);
  told.block.storage = storage.id();
  if (!is_block(event)) return;
  const OffsetAllocator& offsets = session_.residency().arena().offsets();
  if (offsets.unused() == Bytes(0)) return;
  holes_ += 1 - static_cast<double>(offsets.largest_hole().count()) /
                    static_cast<double>(offsets.unused().count());
  ++placed_;
}

StepPicture PictureRecorder::take() {
  const OffsetAllocator& offsets = session_.residency().arena().offsets();
  picture_ = {};
  picture_.capacity = offsets.capacity();
  picture_.fragmentation = placed_ > 0 ? holes_ / static_cast<double>(placed_) : 0;
  holes_ = 0;
  placed_ = 0;
  auto told = told_.cbegin();
  const EventLog& log = session_.events();
  for (; next_tag_ < log.next_tag(); ++next_tag_) {
    for (; told != told_.cend() && told->tag <= next_tag_; ++told) take_told(*told);
    const EventRecord* event = log.find(next_tag_);
    picture_.incomplete = picture_.incomplete || event == nullptr;
    if (event) take_logged(*event);
  }
  for (; told != told_.cend(); ++told) take_told(*told);
  told_.clear();

  picture_.duration = step_end_ - step_begin_;
  const auto add = [&](PlacedBlock block) {
    block.from_before = block.from < step_begin_;
    block.from = std::clamp(block.from, step_begin_, step_end_) - step_begin_;
    block.to = std::clamp(block.to, step_begin_, step_end_) - step_begin_;
    if (block.category == Category::kWorkspace) block.storage = 0;
    picture_.blocks.push_back(block);
  };
  for (const PlacedBlock& block : ended_) add(block);
  ended_.clear();
  for (auto& [storage, block] : live_) {
    block.to = step_end_;
    block.age = age_of(storage);
    add(block);
  }
  std::sort(picture_.blocks.begin(), picture_.blocks.end(),
            [](const PlacedBlock& a, const PlacedBlock& b) {
              return std::pair(a.from, a.offset) < std::pair(b.from, b.offset);
            });
  for (CurvePoint& point : picture_.curve) {
    point.time = std::clamp(point.time - step_begin_, Nanos(0), picture_.duration);
  }
  used_ = offsets.used();
  picture_.curve.push_back({picture_.duration, used_});
  picture_.curve = thin_out(picture_.curve, kCurvePoints);
  for (Decision& decision : picture_.decisions) decision.time -= step_begin_;
  if (picture_.decisions.size() > kDecisionsKept) {
    picture_.decisions.erase(picture_.decisions.begin(),
                             picture_.decisions.end() - static_cast<int64_t>(kDecisionsKept));
  }
  return std::exchange(picture_, {});
}

void PictureRecorder::take_told(const Told& told) {
  using Kind = StorageEvent::Kind;
  const uint32_t storage = told.block.storage;
  const auto live = live_.find(storage);
  const auto leaves_as = [&](Ending ending) {
    if (live == live_.end()) return;
    live->second.ending = ending;
    live->second.reason = told.reason;
  };
  switch (told.kind) {
    case Kind::kPlaced:
    case Kind::kUploaded:
    case Kind::kReloaded:
    case Kind::kPrefetched:
      live_[storage] = told.block;
      live_[storage].from = now_;
      if (told.kind == Kind::kPlaced) unwritten_.push_back(storage);
      break;
    case Kind::kUsed: known_[storage].used = now_; break;
    case Kind::kEvicted: leaves_as(Ending::kEvicted); break;
    case Kind::kOffloaded: leaves_as(Ending::kOffloaded); break;
    case Kind::kDropped: leaves_as(Ending::kDropped); break;
    case Kind::kLeft:
      if (live != live_.end() && live->second.ending == Ending::kStays) {
        live->second.ending = Ending::kUnused;
      }
      end_block(storage);
      std::erase(unwritten_, storage);
      break;
    case Kind::kMoved:
      leaves_as(Ending::kMoved);
      end_block(storage);
      live_[storage] = told.block;
      live_[storage].from = now_;
      break;
    case Kind::kGone: known_.erase(storage); break;
    case Kind::kCopiedOut:
    case Kind::kCopyDropped:
    case Kind::kUnused:
    case Kind::kDied:
    case Kind::kCall:
    case Kind::kRun:
    case Kind::kIssued:
    case Kind::kCallDone: break;
  }
}

void PictureRecorder::end_block(uint32_t storage) {
  const auto live = live_.find(storage);
  if (live == live_.end()) return;
  PlacedBlock& block = live->second;
  block.to = now_;
  block.age = age_of(storage);
  ended_.push_back(block);
  live_.erase(live);
}

void PictureRecorder::take_logged(const EventRecord& event) {
  const bool calls = event.kind == EventKind::kOperator || event.kind == EventKind::kRecompute;
  const bool computes = calls || event.kind == EventKind::kCompact;
  switch (event.kind) {
    case EventKind::kStepBegin:
      // Work issued before may still be running, such as the program's setup before the first
      // step.
      step_begin_ = event.start;
      now_ = std::max(now_, event.start);
      ended_.clear();  // earlier events do not belong to the step
      picture_.curve = {{step_begin_, used_}};
      picture_.decisions.clear();
      picture_.decisions_made = 0;
      return;
    case EventKind::kStepEnd: step_end_ = now_ = std::max(now_, event.start); return;
    default: break;
  }
  if (computes) now_ = std::max(now_, event.start);
  used_ = event.used;
  picture_.curve.push_back({now_, used_});
  if (calls) {
    // The operator writes what was placed for it, scratch included.
    for (const uint32_t storage : std::exchange(unwritten_, {})) {
      live_.at(storage).from = now_;
      known_[storage].cost = event.expected;
    }
  }
  decide(event);
  if (computes) now_ = std::max(now_, event.end);
}

Nanos PictureRecorder::age_of(uint32_t storage) const {
  const auto known = known_.find(storage);
  return known == known_.end() ? Nanos(0) : std::max(Nanos(0), now_ - known->second.used);
}

void PictureRecorder::decide(const EventRecord& event) {
  switch (event.kind) {
    case EventKind::kEvict:
    case EventKind::kOffload:
    case EventKind::kCopyOut:
    case EventKind::kDropClean:
    case EventKind::kDropCopy: break;
    default: return;
  }
  ++picture_.decisions_made;
  const auto made = known_.find(event.storage);
  const bool computed = event.kind == EventKind::kEvict || event.kind == EventKind::kDropCopy;
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

}  // namespace tidemark::compare

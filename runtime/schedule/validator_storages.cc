#include <algorithm>

#include "runtime/schedule/validator_notes.h"
#include "runtime/schedule/validator_onlooker.h"

namespace tidemark::schedule_validator {
namespace {

using Do = Schedule::Do;
using Instruction = Schedule::Instruction;
constexpr uint32_t kNone = Onlooker::kNone;

class Walk {
 public:
  explicit Walk(Notes& notes) : n_(notes), s_(notes.schedule), known_(notes) {}

  void run() {
    begin();
    for (now_ = 0; now_ < s_.code.size(); ++now_) {
      step(s_.code[now_]);
      if (tier_ > n_.limits.tier_space && !tier_full_) {
        n_.say_at(now_, "copies need more space than the tiers have");
        tier_full_ = true;
      }
      if (!loses_) continue;
      for (const uint32_t s : known_.newly_lost()) {
        say(n_.name(s) + " can no longer be restored");
      }
      loses_ = false;
    }
    end();
  }

 private:
  void say(const std::string& what) { n_.say_at(now_, what); }

  void begin() {
    for (uint32_t b = 0; b < s_.initial_blocks; ++b) {
      const uint32_t storage = s_.blocks[b].storage;
      const bool foreign = n_.is_foreign(storage);
      if (!foreign && !n_.trace.storages[storage].at_start) {
        n_.say(n_.name(storage) + " has an initial block but is not live at the start");
      }
      if (n_.is_apart(storage)) n_.say(n_.name(storage) + " is kept apart but has a block");
      if (known_[storage].block != kNone) n_.say(n_.name(storage) + " has two initial blocks");
      known_[storage].block = b;
    }
    for (uint32_t s = 0; s < known_.size(); ++s) {
      known_[s].made = n_.is_foreign(s) || n_.trace.storages[s].at_start;
      if (!known_[s].made || known_.resident(s)) continue;
      if (!n_.is_foreign(s) && !n_.trace.storages[s].may_offload) {
        n_.say(n_.name(s) + " begins on a tier but may not be offloaded");
      }
      copy(s);
    }
    if (tier_ > n_.limits.tier_space) {
      n_.say("the storages that begin on the tiers need more space than the tiers have");
      tier_full_ = true;
    }
  }

  void step(const Instruction& it) {
    if (it.what == Do::kRun || it.what == Do::kUpload || it.what == Do::kRead)
      return run_op(it);
    const uint32_t storage = it.subject;
    const std::string name = n_.name(storage);
    if (n_.is_apart(storage)) return say(name + " is kept apart");
    if (n_.is_foreign(storage) && it.what != Do::kMove && it.what != Do::kFree) {
      return say(name + " may only be moved or freed");
    }
    Onlooker::Known& known = known_[storage];
    const bool needs_block = it.what == Do::kEvict || it.what == Do::kCopyOut ||
                             it.what == Do::kOffload || it.what == Do::kMove;
    if (needs_block && known.block == kNone) return say(name + " is not resident");
    if ((it.what == Do::kEvict || it.what == Do::kOffload) && s_.residents_apart) {
      say("nothing may be released when residents are kept apart");
    }
    switch (it.what) {
      case Do::kFree: return free(storage);
      case Do::kEvict:
        if (!known_.may_be_made_again(storage)) say(name + " may not be evicted");
        end_block(storage, now_ + 1);
        drop_copy(storage);
        loses_ = true;
        return;
      case Do::kCopyOut:
      case Do::kOffload:
        if (!n_.trace.storages[storage].may_offload) say(name + " may not be offloaded");
        copy(storage);
        if (it.what == Do::kOffload) end_block(storage, now_ + 1);
        return;
      case Do::kCopyIn:
        if (!known.copied) say(name + " has no valid copy");
        if (known.block != kNone) say(name + " is already resident");
        known.block = it.first_block;
        return;
      case Do::kDropCopy:
        if (!known.copied) say(name + " has no copy");
        drop_copy(storage);
        loses_ = true;
        return;
      case Do::kMove:
        end_block(storage, now_);
        known.block = it.first_block;
        return;
      default: return;
    }
  }

  void free(uint32_t storage) {
    Onlooker::Known& known = known_[storage];
    const std::string name = n_.name(storage);
    if (known.block == kNone && !known.copied)
      return say(name + " is freed but is neither resident nor copied");
    if (n_.is_foreign(storage)) known.let_go = true;  // no operator tells when
    if (!known.let_go) say(name + " is freed before the program releases it");
    if (known.uses_left > 0 || known.own_uses_left > 0)
      say(name + " is freed before its last use");
    if (known.block != kNone) end_block(storage, now_ + 1);
    drop_copy(storage);
    loses_ = true;
  }

  void run_op(const Instruction& it) {
    const uint32_t k = it.subject;
    const StepTrace::Op& op = n_.trace.ops[k];
    if (it.again) {
      if (!known_.ran[k]) say(n_.op(k) + " runs again before it has run");
      if (Onlooker::writes(op)) say(n_.op(k) + " writes in place and must not run again");
    } else {
      if (known_.ran[k]) return say(n_.op(k) + " of the program runs twice");
      check_barriers(k);
    }
    for (const StepTrace::Input& input : op.implementation(it.variant).inputs) {
      const Onlooker::Known& known = known_[input.storage];
      const std::string name = n_.name(input.storage);
      if (!known.made) {
        say(n_.op(k) + " reads " + name + ", which has not been produced yet");
      } else if (!known_.resident(input.storage)) {
        say(n_.op(k) + " reads " + name + ", which is not resident");
      } else if (known.version != input.version) {
        say(n_.op(k) + " reads version " + std::to_string(input.version) + " of " + name +
            ", which is at version " + std::to_string(known.version));
      }
    }
    const uint32_t overwritten_block =
        it.overwrites == kNone ? kNone : known_[it.overwrites].block;
    for (size_t i = 0; i < it.blocks; ++i) take(it, i);
    if (it.again) return;
    finish(it);
    if (it.overwrites != kNone) overwrite(it, overwritten_block);
  }

  // Call after finish(): the program may drop the input after this very operator.
  void overwrite(const Instruction& it, uint32_t block) {
    const Onlooker::Known& known = known_[it.overwrites];
    const std::string name = n_.name(it.overwrites);
    if (n_.is_apart(it.overwrites)) return say(name + " is kept apart");
    if (block == kNone) return;  // said already: it is not resident
    if (!known.let_go) say(name + " is overwritten before the program releases it");
    if (known.uses_left > 0 || known.own_uses_left > 0)
      say(name + " is overwritten before its last use");
    if (s_.blocks[block].end != now_) {
      say("the overwritten block " + std::to_string(block) + " does not end here");
    }
    if (s_.placed && s_.blocks[block].at != s_.blocks[it.first_block].at) {
      say(name + " and what overwrites it have different offsets");
    }
    known_[it.overwrites].block = kNone;
    drop_copy(it.overwrites);
    loses_ = true;
  }

  void take(const Instruction& it, size_t i) {
    const auto b = static_cast<uint32_t>(it.first_block + i);
    const uint32_t storage = s_.blocks[b].storage;
    if (storage == Schedule::kScratch) {
      if (s_.blocks[b].end != now_ + 1) say("scratch or a workspace outlives its call");
      return;
    }
    Onlooker::Known& known = known_[storage];
    const std::string name = n_.name(storage);
    if (it.again) {
      if (known.block != kNone) return say(name + " is resident, so it must go to scratch");
      if (!n_.trace.storages[storage].may_evict) say(name + " may not be recomputed");
      if (known.version != 0) say(name + " has been written since it was produced");
    } else if (known.made) {
      say(name + " is produced twice");
    }
    known.block = b;
  }

  // Notes what the program sees of an operator's first run.
  void finish(const Instruction& it) {
    const uint32_t k = it.subject;
    const StepTrace::Op& op = n_.trace.ops[k];
    known_.ran[k] = true;
    last_ = std::max(last_, k + 1);
    ++count_;
    for (const StepTrace::Input& input : op.implementation(it.variant).inputs) {
      --known_[input.storage].uses_left;
      if (!input.written) continue;
      ++known_[input.storage].version;
      drop_copy(input.storage);
      loses_ = true;
    }
    for (const StepTrace::Input& input : op.inputs) {
      if (it.variant != 0) --known_[input.storage].own_uses_left;
    }
    for (const uint32_t output : op.outputs) {
      known_[output].made = true;
      --known_[output].uses_left;
    }
    for (const uint32_t released : op.released) known_[released].let_go = true;
  }

  // No operator is moved past a read, in either direction.
  void check_barriers(uint32_t k) {
    if (n_.trace.ops[k].kind == StepTrace::Kind::kRead) {
      if (count_ != k || last_ > k)
        say(n_.op(k) + " is a read, and an operator is moved past it");
      barrier_ = k;
    } else if (barrier_ != kNone && k < barrier_) {
      say(n_.op(k) + " is moved past a read");
    }
  }

  void copy(uint32_t storage) {
    if (!known_[storage].copied) tier_ += n_.size(storage);
    known_[storage].copied = true;
  }
  void drop_copy(uint32_t storage) {
    if (known_[storage].copied) tier_ -= n_.size(storage);
    known_[storage].copied = false;
  }
  // A copy under way may keep the block's bytes for longer, unless the block moves.
  void end_block(uint32_t storage, size_t end) {
    const uint32_t block = known_[storage].block;
    const bool moves = s_.code[now_].what == Schedule::Do::kMove;
    const bool ends = moves ? s_.blocks[block].end == end : s_.blocks[block].end >= end;
    if (!ends) {
      say("it ends block " + std::to_string(block) + " of " + n_.name(storage) +
          ", whose stated end is " + std::to_string(s_.blocks[block].end));
    }
    known_[storage].block = kNone;
  }

  void end() {
    for (uint32_t k = 0; k < n_.trace.ops.size(); ++k) {
      if (!known_.ran[k]) n_.say(n_.op(k) + " never runs");
    }
    for (uint32_t s = 0; s < known_.size(); ++s) {
      const Onlooker::Known& known = known_[s];
      const bool stays = n_.is_foreign(s) ? !known.let_go : n_.trace.storages[s].at_end;
      if (known.block != kNone && s_.blocks[known.block].end != s_.code.size()) {
        n_.say("nothing ends block " + std::to_string(known.block) + " of " + n_.name(s) +
               ", whose stated end is " + std::to_string(s_.blocks[known.block].end));
      }
      if (stays && !known_.resident(s) && !known.copied) {
        n_.say(n_.name(s) + " is neither resident nor copied at the end");
      }
      if (!stays && (known.block != kNone || known.copied)) {
        n_.say(n_.name(s) + " is still live at the end");
      }
    }
  }

  Notes& n_;
  const Schedule& s_;
  Onlooker known_;
  size_t now_ = 0;
  uint32_t count_ = 0;        // operators that have run
  uint32_t last_ = 0;         // one past the latest of the program that has run
  uint32_t barrier_ = kNone;  // the last read that has run
  Bytes tier_{0};
  bool tier_full_ = false;  // already reported
  bool loses_ = false;      // a storage may have become impossible to restore
};

}  // namespace

void check_storages(Notes& notes) { Walk(notes).run(); }

}  // namespace tidemark::schedule_validator

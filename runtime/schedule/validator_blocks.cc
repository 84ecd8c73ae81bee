#include <algorithm>
#include <map>

#include "runtime/schedule/validator_notes.h"

namespace tidemark::schedule_validator {
namespace {

using Do = Schedule::Do;
using Instruction = Schedule::Instruction;
using Block = Schedule::Block;

bool is_op(Do what) { return what == Do::kRun || what == Do::kUpload || what == Do::kRead; }

bool fits_size(Bytes block, Bytes wanted) {
  return block == wanted || block == align_up(wanted);
}

class References {
 public:
  explicit References(Notes& notes) : n_(notes), s_(notes.schedule) {}

  bool run() {
    if (s_.initial_blocks > s_.blocks.size()) {
      n_.say("there are more initial blocks than blocks");
      return false;
    }
    for (uint32_t b = 0; b < s_.initial_blocks; ++b) check_initial(b);
    next_ = s_.initial_blocks;
    for (now_ = 0; now_ < s_.code.size(); ++now_) check(s_.code[now_]);
    if (next_ != s_.blocks.size()) n_.say("some blocks are taken by no instruction");
    return n_.found.empty();
  }

 private:
  void check_initial(uint32_t b) {
    const Block& block = s_.blocks[b];
    const std::string where = "initial block " + std::to_string(b) + ": ";
    if (block.begin != 0) n_.say(where + "it must begin at 0");
    if (block.end > s_.code.size()) n_.say(where + "it ends after the last instruction");
    if (block.storage >= n_.storages()) return n_.say(where + "there is no such storage");
    if (!fits_size(block.size, n_.size(block.storage))) {
      n_.say(where + "its size differs from that of " + n_.name(block.storage));
    }
  }

  void check(const Instruction& it) {
    const bool of_op = is_op(it.what);
    if (it.what > Do::kMove || it.subject >= (of_op ? n_.trace.ops.size() : n_.storages())) {
      next_ += it.first_block == next_ ? it.blocks : 0;
      return n_.say_at(now_, it.what > Do::kMove ? "there is no such instruction"
                             : of_op             ? "there is no such operator"
                                                 : "there is no such storage");
    }
    if (it.again && it.what != Do::kRun) {
      n_.say_at(now_, "only calls run again");
    }
    if (it.variant > (of_op ? n_.trace.ops[it.subject].variants.size() : 0)) {
      next_ += it.first_block == next_ ? it.blocks : 0;
      return n_.say_at(now_, "there is no such variant");
    }
    if (it.again && it.variant != 0) n_.say_at(now_, "no variant runs again");
    if (it.overwrites != Schedule::kScratch) check_in_place(it);
    if (of_op) {
      static constexpr Do kOf[] = {Do::kRun, Do::kUpload, Do::kRead};
      if (it.what != kOf[static_cast<size_t>(n_.trace.ops[it.subject].kind)]) {
        n_.say_at(now_, n_.op(it.subject) + " is of another kind");
      }
    }
    check_blocks(it);
  }

  void check_in_place(const Instruction& it) {
    if (it.what != Do::kRun || it.again) {
      return n_.say_at(now_, "only an operator of the program runs in place");
    }
    const StepTrace::Op& op = n_.trace.ops[it.subject];
    const auto listed = [&](const std::vector<uint32_t>& list) {
      return std::find(list.begin(), list.end(), it.overwrites) != list.end();
    };
    if (!listed(op.implementation(it.variant).may_overwrite)) {
      n_.say_at(now_, n_.op(it.subject) + " may not overwrite that storage");
    } else if (n_.size(it.overwrites) != n_.size(op.outputs.front())) {
      n_.say_at(now_, n_.op(it.subject) + " overwrites a storage of another size");
    }
  }

  void check_blocks(const Instruction& it) {
    const StepTrace::Op* op = is_op(it.what) ? &n_.trace.ops[it.subject] : nullptr;
    const Bytes workspace = op ? op->implementation(it.variant).workspace : Bytes(0);
    const bool works = workspace > Bytes(0);
    const size_t wanted = op ? op->outputs.size() + (works ? 1 : 0)
                             : (it.what == Do::kCopyIn || it.what == Do::kMove ? 1 : 0);
    if (it.blocks != wanted) {
      n_.say_at(now_, "it takes " + std::to_string(it.blocks) + " blocks instead of " +
                          std::to_string(wanted));
    }
    if (it.blocks == 0) return;
    if (it.first_block != next_ || next_ + it.blocks > s_.blocks.size()) {
      n_.say_at(now_, "its blocks do not follow those of the previous instruction");
      next_ = std::min(s_.blocks.size(), size_t{it.first_block} + it.blocks);
      return;
    }
    next_ += it.blocks;
    if (it.blocks != wanted) return;
    for (size_t i = 0; i < wanted; ++i) {
      const Block& block = s_.blocks[it.first_block + i];
      const bool is_output = op && i < op->outputs.size();
      const uint32_t storage = is_output ? op->outputs[i]
                               : op      ? Schedule::kScratch
                                         : it.subject;
      const bool to_scratch = is_output && it.again && block.storage == Schedule::kScratch;
      if (block.storage != storage && !to_scratch) {
        n_.say_at(now_, "its block " + std::to_string(i) + " is for another storage");
      }
      const Bytes size = storage == Schedule::kScratch ? workspace : n_.size(storage);
      if (!fits_size(block.size, size)) {
        n_.say_at(now_, "its block " + std::to_string(i) + " has " +
                            std::to_string(block.size.count()) + " bytes instead of " +
                            std::to_string(size.count()));
      }
      if (block.begin != now_) {
        n_.say_at(now_,
                  "its block " + std::to_string(i) + " does not begin at this instruction");
      }
      if (block.end < block.begin || block.end > s_.code.size()) {
        n_.say_at(now_,
                  "its block " + std::to_string(i) + " ends before it begins, or too late");
      }
    }
  }

  Notes& n_;
  const Schedule& s_;
  size_t now_ = 0;
  size_t next_ = 0;  // the first block that no instruction has taken yet
};

class Space {
 public:
  explicit Space(Notes& notes) : n_(notes), s_(notes.schedule) {}

  void run() {
    std::vector<std::vector<uint32_t>> begins(s_.code.size() + 1), ends(s_.code.size() + 1);
    for (uint32_t b = 0; b < s_.blocks.size(); ++b) {
      const Block& block = s_.blocks[b];
      if (block.begin >= block.end || block.size == Bytes(0)) continue;
      begins[block.begin].push_back(b);
      ends[block.end].push_back(b);
    }
    for (size_t now = 0; now < begins.size(); ++now) {
      for (const uint32_t b : ends[now]) leave(b);
      for (const uint32_t b : begins[now]) enter(b, now);
      most_ = std::max(most_, live_);
    }
    check_figures();
  }

 private:
  // Adds the block to the live ones by offset. These do not overlap, as a block that would is
  // left out.
  void enter(uint32_t b, size_t now) {
    const Block& block = s_.blocks[b];
    live_ += block.size;
    if (!s_.placed) return;
    const auto next = live_blocks_.upper_bound(block.at.value());
    const auto meets = [&](uint32_t other) {
      const Block& o = s_.blocks[other];
      if (o.at + o.size <= block.at || block.at + block.size <= o.at) return false;
      n_.say_at(now, "block " + std::to_string(b) + " shares bytes with block " +
                         std::to_string(other));
      return true;
    };
    if (next != live_blocks_.end() && meets(next->second)) return;
    if (next != live_blocks_.begin() && meets(std::prev(next)->second)) return;
    live_blocks_.emplace(block.at.value(), b);
  }
  void leave(uint32_t b) {
    live_ -= s_.blocks[b].size;
    const auto found = live_blocks_.find(s_.blocks[b].at.value());
    if (s_.placed && found != live_blocks_.end() && found->second == b)
      live_blocks_.erase(found);
  }

  void check_figures() {
    Bytes apart{0};
    for (uint32_t s = 0; s < n_.storages(); ++s) {
      if (n_.is_apart(s)) apart += n_.size(s);
    }
    const Bytes peak = s_.placed ? highest() : most_;
    if (peak != s_.peak) {
      n_.say("the peak is " + std::to_string(peak.count()) + " bytes, not " +
             std::to_string(s_.peak.count()) + " as stated");
    }
    if (s_.peak_bound > s_.peak) n_.say("the peak is below its bound");
    const Bytes over = apart + peak - n_.limits.space;
    if (over > (s_.placed ? Bytes(0) : s_.shortfall)) {
      n_.say("the peak" + std::string(apart > Bytes(0) ? ", with residents," : "") + " is " +
             std::to_string(over.count()) + " bytes above the available space" +
             (s_.placed ? "" : ", more than the stated shortfall"));
    }
  }
  Bytes highest() const {
    Bytes top{0};
    const bool aligned = std::all_of(s_.blocks.begin(), s_.blocks.end(),
                                     [](const Block& b) { return b.size == align_up(b.size); });
    for (size_t b = 0; b < s_.blocks.size(); ++b) {
      const Block& block = s_.blocks[b];
      const std::string name = "block " + std::to_string(b);
      if (block.at < Offset(0)) n_.say(name + " begins below the arena");
      if (aligned && block.at.value() % kAlignment.count() != 0)
        n_.say(name + " is not aligned");
      top = std::max(top, block.at + block.size - Offset(0));
    }
    return top;
  }

  Notes& n_;
  const Schedule& s_;
  std::map<int64_t, uint32_t> live_blocks_;
  Bytes live_{0}, most_{0};
};

}  // namespace

bool check_references(Notes& notes) { return References(notes).run(); }
void check_space(Notes& notes) { Space(notes).run(); }

}  // namespace tidemark::schedule_validator

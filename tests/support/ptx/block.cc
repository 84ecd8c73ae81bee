#include "tests/support/ptx/block.h"

#include <cxxabi.h>

#include <bit>
#include <cstdlib>
#include <sstream>
#include <utility>

#include "tests/support/ptx/instructions.h"

namespace tidemark::ptx {
namespace {

// Instructions of all warps. Our largest blocks take a few millions.
constexpr int64_t kMaxSteps = 50'000'000;

constexpr int kWindowShift = 56;

uint64_t window_of(Space space) {
  switch (space) {
    case Space::kShared: return uint64_t{1} << kWindowShift;
    case Space::kLocal: return uint64_t{2} << kWindowShift;
    case Space::kParam: return uint64_t{3} << kWindowShift;
    default: return 0;
  }
}

Space space_of(uint64_t generic) {
  switch (generic >> kWindowShift) {
    case 1: return Space::kShared;
    case 2: return Space::kLocal;
    case 3: return Space::kParam;
    default: return Space::kGlobal;
  }
}

std::string hexadecimal(uint64_t value) {
  std::ostringstream out;
  out << "0x" << std::hex << value;
  return out.str();
}

void require_alignment(const Step& step, int lane, uint64_t address, int64_t bytes) {
  if ((address & static_cast<uint64_t>(bytes - 1)) != 0) {
    step.fail(
        Check::kMisaligned, lane,
        "address " + hexadecimal(address) + " is no multiple of " + std::to_string(bytes));
  }
}

std::string describe(const SharedMemory::Conflict& conflict) {
  if (conflict.check == Check::kUnwrittenShared) return " was never written";
  const std::string other = std::to_string(conflict.other);
  if (conflict.check == Check::kCopy) {
    return ": thread " + other + " copies to it and has not waited for the end";
  }
  return ": used by thread " + other + " with no barrier since";
}

bool within(uint64_t at, int64_t bytes, int64_t size) {
  return static_cast<int64_t>(at) >= 0 && static_cast<int64_t>(at) + bytes <= size;
}

}  // namespace

std::string readable(const std::string& mangled) {
  int status = 0;
  char* const name = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string result = status == 0 ? name : mangled;
  std::free(name);
  return result;
}

Block::Block(const Kernel& kernel, const Extents& grid, const Extents& threads,
             std::vector<std::byte> parameters, const GlobalMemory& global)
    : kernel_(kernel),
      grid_(grid),
      threads_(threads),
      parameters_(std::move(parameters)),
      global_(global),
      shared_(kernel, static_cast<int>(threads.count())),
      copies_(shared_, static_cast<int>(threads.count())),
      local_(static_cast<size_t>(kernel.local_bytes * threads.count())) {
  const auto count = static_cast<int>(threads.count());
  if (global.races_watched()) races_.emplace(count);
  for (int warp = 0; warp * kLanes < count; ++warp) {
    warps_.push_back(std::make_unique<Warp>(*this, kernel, warp, count));
  }
}

void Block::run(int64_t index) {
  index_ = index;
  steps_ = 0;
  shared_.begin_block();
  if (races_) races_->begin_block(index);
  for (const auto& warp : warps_) warp->begin();
  for (bool forwards = true;; forwards = !forwards) {
    bool waiting = false, exited = false;
    for (size_t i = 0; i < warps_.size(); ++i) {
      Warp& warp = *warps_[forwards ? i : warps_.size() - 1 - i];
      warp.run();
      waiting = waiting || warp.waiting() != 0;
      exited = exited || warp.exited() != 0;
    }
    if (!waiting) break;
    if (exited) {
      fail(Check::kBarrier, kernel_.code.back(), -1,
           "some threads of the block wait at a barrier, others have exited");
    }
    shared_.barrier();
    if (races_) races_->barrier();
    for (const auto& warp : warps_) warp->release();
  }
  require_finished_copies();
}

void Block::require_finished_copies() const {
  if (const auto left = copies_.unfinished()) {
    fail(Check::kCopy, *left->copy.instruction, left->thread,
         "has ended without waiting for this copy");
  }
}

std::byte* Block::access(const Step& step, int lane, Space space, uint64_t address,
                         int64_t bytes, bool write) {
  require_alignment(step, lane, address, bytes);
  if (space == Space::kGeneric) {
    space = space_of(address);
    address = from_generic(space, address);
  }
  switch (space) {
    case Space::kShared: return access_shared(step, lane, address, bytes, write);
    case Space::kLocal: {
      if (!within(address, bytes, kernel_.local_bytes)) {
        step.fail(
            Check::kLocalBounds, lane,
            "byte " + std::to_string(address) + " of " + std::to_string(kernel_.local_bytes));
      }
      const int64_t base = kernel_.local_bytes * step.thread(lane);
      return local_.data() + base + static_cast<int64_t>(address);
    }
    case Space::kParam:
      if (write || !within(address, bytes, kernel_.parameter_bytes)) {
        step.fail(Check::kParamBounds, lane,
                  "byte " + std::to_string(address) + " of " +
                      std::to_string(kernel_.parameter_bytes));
      }
      return const_cast<std::byte*>(parameters_.data()) + address;
    default: return access_global(step, lane, address, bytes, write);
  }
}

std::byte* Block::access_global(const Step& step, int lane, uint64_t address, int64_t bytes,
                                bool write) {
  if (const auto check = global_.check(address, bytes, write)) {
    step.fail(*check, lane,
              (write ? "writes " : "reads ") + std::to_string(bytes) + " bytes at " +
                  hexadecimal(address) + ", " + global_.nearest(address));
  }
  (write ? counts_.written : counts_.read) += bytes;
  if (races_) watch_global(step, lane, address, bytes, write);
  return reinterpret_cast<std::byte*>(address);
}

void Block::watch_global(const Step& step, int lane, uint64_t address, int64_t bytes,
                         bool write) {
  const Execute execute = step.instruction.execute;
  if (execute == execute_atom || execute == execute_red) return;
  const int thread = step.thread(lane);
  if (step.has(Modifier::k_volatile) || step.has(Modifier::k_relaxed)) {
    return write ? races_->store_mark(address, thread) : races_->load_mark(address, thread);
  }
  const auto other =
      write ? races_->write(address, bytes, thread) : races_->read(address, bytes, thread);
  if (other) {
    step.fail(Check::kGlobalRace, lane,
              hexadecimal(address) + ", " + global_.nearest(address) + ": used by thread " +
                  std::to_string(other->thread) + " of block " + std::to_string(other->block) +
                  ", and nothing orders the two");
  }
}

void Block::fence(int thread) {
  if (races_) races_->fence(thread);
}

std::byte* Block::access_shared(const Step& step, int lane, uint64_t address, int64_t bytes,
                                bool write) {
  const auto where = [&] { return "shared byte " + std::to_string(address); };
  if (!within(address, bytes, shared_.bytes())) {
    step.fail(Check::kSharedBounds, lane, where() + " of " + std::to_string(shared_.bytes()));
  }
  const auto at = static_cast<int64_t>(address);
  const int thread = step.thread(lane);
  const auto conflict = write ? shared_.write(at, static_cast<int>(bytes), thread)
                              : shared_.read(at, static_cast<int>(bytes), thread);
  if (conflict) {
    step.fail(conflict->check, lane, where() + describe(*conflict));
  }
  return shared_.data() + at;
}

void Block::start_copy(const Step& step, int lane, uint64_t to, uint64_t from, int64_t bytes,
                       int64_t read) {
  if (read > bytes) {
    step.fail(
        Check::kCopy, lane,
        "is to read " + std::to_string(read) + " bytes and copies " + std::to_string(bytes));
  }
  require_alignment(step, lane, to, bytes);
  require_alignment(step, lane, from, bytes);
  const std::byte* const source =
      read > 0 ? access_global(step, lane, from, read, false) : nullptr;
  access_shared(step, lane, to, bytes, true);
  copies_.start(step.thread(lane),
                {&step.instruction, static_cast<int64_t>(to), source, bytes, read});
}

uint64_t Block::to_generic(Space space, uint64_t address) { return window_of(space) + address; }
uint64_t Block::from_generic(Space space, uint64_t address) {
  return address - window_of(space);
}

uint64_t Block::special(Special special, int warp, int lane) const {
  const auto thread = static_cast<uint32_t>(warp * kLanes + lane);
  const auto block = static_cast<uint64_t>(index_);
  switch (special) {
    case Special::kThreadX: return thread % threads_.x;
    case Special::kThreadY: return thread / threads_.x % threads_.y;
    case Special::kThreadZ: return thread / threads_.x / threads_.y;
    case Special::kBlockSizeX: return threads_.x;
    case Special::kBlockSizeY: return threads_.y;
    case Special::kBlockSizeZ: return threads_.z;
    case Special::kBlockX: return block % grid_.x;
    case Special::kBlockY: return block / grid_.x % grid_.y;
    case Special::kBlockZ: return block / grid_.x / grid_.y;
    case Special::kGridX: return grid_.x;
    case Special::kGridY: return grid_.y;
    case Special::kGridZ: return grid_.z;
    case Special::kLane: return static_cast<uint64_t>(lane);
    case Special::kWarp: return static_cast<uint64_t>(warp);
    case Special::kLanesBelow: return (uint64_t{1} << lane) - 1;
  }
  return 0;
}

void Block::count_step() {
  if (++steps_ > kMaxSteps) {
    fail(Check::kEndless, kernel_.code.front(), -1, "the block does not come to an end");
  }
}

void Block::count(const Instruction& instruction, LaneMask active) {
  if (instruction.flops == 0) return;
  const bool tensor_core = instruction.together == Together::kAligned;
  (tensor_core ? counts_.tensor_flops : counts_.flops) +=
      int64_t{instruction.flops} * std::popcount(active);
}

void Block::fail(Check check, const Instruction& instruction, int thread,
                 const std::string& what) const {
  const auto number = static_cast<size_t>(&instruction - kernel_.code.data());
  std::ostringstream message;
  message << "[" << name_of(check) << "] " << readable(kernel_.name) << "\n  " << kernel_.file
          << ":" << instruction.line << ": " << kernel_.text[number] << "\n  block " << index_;
  if (thread >= 0) message << ", thread " << thread;
  message << ": " << what;
  throw Violation(check, message.str());
}

void Step::fail(Check check, int lane, const std::string& what) const {
  block.fail(check, instruction, thread(lane), what);
}

void wrong_type(const Step& s) {
  throw NotCovered("a type that is not covered, line " + std::to_string(s.instruction.line));
}

}  // namespace tidemark::ptx

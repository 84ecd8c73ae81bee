// Loads, stores, atomic operations and asynchronous copies.
#include <algorithm>
#include <cstring>

#include "tests/support/ptx/block.h"
#include "tests/support/ptx/instructions.h"
#include "tests/support/ptx/step.h"

namespace tidemark::ptx {
namespace {

uint64_t address_of(const Step& s, int lane) {
  return s.in(0)[lane] + static_cast<uint64_t>(s.instruction.offset);
}

uint64_t load(const std::byte* from, Type type) {
  uint64_t value = 0;
  std::memcpy(&value, from, static_cast<size_t>(type.bytes()));
  // Fills a wider register with the sign.
  const int unused = 64 - type.bits;
  if (type.kind == Kind::kSigned)
    value = static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused);
  return value;
}

// The value after the operation; `b` is what cas compares with.
template <class T>
T combine(const Step& s, T old, T a, T b) {
  if (s.has(Modifier::k_add)) return static_cast<T>(old + a);
  if (s.has(Modifier::k_min)) return std::min(old, a);
  if (s.has(Modifier::k_max)) return std::max(old, a);
  if (s.has(Modifier::k_exch)) return a;
  if (s.has(Modifier::k_cas)) return old == a ? b : old;
  if constexpr (std::is_integral_v<T>) {
    if (s.has(Modifier::k_and)) return static_cast<T>(old & a);
    if (s.has(Modifier::k_or)) return static_cast<T>(old | a);
    if (s.has(Modifier::k_xor)) return static_cast<T>(old ^ a);
  }
  wrong_type(s);
}

// Lanes one after the other. In shared memory atomics would be taken for races.
void update(const Step& s) {
  const Instruction& instruction = s.instruction;
  if (instruction.space != Space::kGlobal && instruction.space != Space::kGeneric)
    wrong_type(s);
  const auto each = [&]<class T>(T) {
    for_lanes(s.mask, [&](int lane) {
      std::byte* const to =
          s.block.access(s, lane, instruction.space, address_of(s, lane), sizeof(T), true);
      T old;
      std::memcpy(&old, to, sizeof(T));
      const T a = from_register<T>(s.in(1)[lane]);
      const T b = instruction.inputs > 2 ? from_register<T>(s.in(2)[lane]) : T{};
      const T value = combine(s, old, a, b);
      std::memcpy(to, &value, sizeof(T));
      if (instruction.outputs > 0) s.out()[lane] = to_register(old);
    });
  };
  if (is_float(s)) {
    visit_float(s, each);
  } else {
    visit_integer(s, each);
  }
}

}  // namespace

void execute_ld(const Step& s) {
  const Type type = s.instruction.type;
  const int count = s.instruction.vector, bytes = type.bytes();
  for_lanes(s.mask, [&](int lane) {
    const std::byte* const from = s.block.access(
        s, lane, s.instruction.space, address_of(s, lane), int64_t{count} * bytes, false);
    for (int i = 0; i < count; ++i) s.out(i)[lane] = load(from + i * bytes, type);
  });
}

void execute_st(const Step& s) {
  const int count = s.instruction.vector, bytes = s.instruction.type.bytes();
  for_lanes(s.mask, [&](int lane) {
    std::byte* const to = s.block.access(s, lane, s.instruction.space, address_of(s, lane),
                                         int64_t{count} * bytes, true);
    for (int i = 0; i < count; ++i) {
      std::memcpy(to + i * bytes, &s.in(1 + i)[lane], static_cast<size_t>(bytes));
    }
  });
}

void execute_atom(const Step& s) { update(s); }
void execute_red(const Step& s) { update(s); }

void execute_membar(const Step& s) {
  if (s.has(Modifier::k_cta)) return;
  for_lanes(s.mask, [&](int lane) { s.block.fence(s.thread(lane)); });
}

void execute_cp_async(const Step& s) {
  for_lanes(s.mask, [&](int lane) {
    const uint64_t from = s.in(1)[lane] + static_cast<uint64_t>(s.instruction.second_offset);
    const auto bytes = from_register<uint32_t>(s.in(2)[lane]);
    const uint32_t read =
        s.instruction.inputs > 3 ? from_register<uint32_t>(s.in(3)[lane]) : bytes;
    s.block.start_copy(s, lane, address_of(s, lane), from, bytes, read);
  });
}

void execute_cp_async_commit_group(const Step& s) {
  for_lanes(s.mask, [&](int lane) { s.block.copies().commit(s.thread(lane)); });
}

void execute_cp_async_wait_group(const Step& s) {
  for_lanes(s.mask, [&](int lane) {
    s.block.copies().wait(s.thread(lane), from_register<uint32_t>(s.in(0)[lane]));
  });
}

void execute_cp_async_wait_all(const Step& s) {
  execute_cp_async_commit_group(s);
  for_lanes(s.mask, [&](int lane) { s.block.copies().wait(s.thread(lane), 0); });
}

}  // namespace tidemark::ptx

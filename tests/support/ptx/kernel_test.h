// Runs small kernels whose PTX stands in a test.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/ptx/launch.h"
#include "tests/support/ptx/module.h"

namespace tidemark::ptx {

inline constexpr int kMaxTestThreads = 128;

// The words that a kernel finds in `in` and leaves in `out`, one for each thread.
struct Words {
  alignas(16) std::array<uint32_t, kMaxTestThreads> in{}, out{};
};

// The text of a kernel. Registers are declared, %r0 is the thread's number, and %d0 and %d1 are
// the addresses of this thread's word of `in` and of `out`. There are 256 bytes of shared
// memory at `s` and 16 of local memory at `l`.
inline std::string kernel_text(const std::string& body) {
  return R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry test(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<8>;
  .reg .b16 %h<16>;
  .reg .b32 %r<64>;
  .reg .f32 %f<64>;
  .reg .b64 %d<16>;
  .reg .f64 %g<8>;
  .shared .align 16 .b8 s[256];
  .local .align 4 .b8 l[16];
  mov.u32 %r0, %tid.x;
  ld.param.u64 %d0, [in];
  ld.param.u64 %d1, [out];
  mad.wide.u32 %d0, %r0, 4, %d0;
  mad.wide.u32 %d1, %r0, 4, %d1;
)" + body +
         "\n  ret;\n}\n";
}

// For a body to begin with: %d2 is the address of this thread's word of shared memory, %d3 that
// of thread 63 - n in the other of two warps, %d4 that of thread n ^ 1 in the same warp.
inline const std::string kPrologue = R"(
  mov.u64 %d5, s;
  mad.wide.u32 %d2, %r0, 4, %d5;
  sub.u32 %r2, 63, %r0;
  mad.wide.u32 %d3, %r2, 4, %d5;
  xor.b32 %r3, %r0, 1;
  mad.wide.u32 %d4, %r3, 4, %d5;
)";

// Runs it on one block, with `shared` more bytes of shared memory. Throws Violation.
inline Counts run_text(const std::string& text, Words& words, int threads = 32,
                       int64_t shared = 0) {
  Module module("test.ptx", text);
  GlobalMemory memory;
  memory.add(words.in.data(), sizeof words.in, false, "in");
  memory.add(words.out.data(), sizeof words.out, true, "out");
  const void* const in = words.in.data();
  const void* const out = words.out.data();
  const std::vector<Argument> arguments{{&in, 8}, {&out, 8}};
  return launch(module.kernel("test"), {}, {static_cast<uint32_t>(threads)}, arguments, memory,
                shared);
}

inline Words run_body(const std::string& body, int threads = 32) {
  Words words;
  for (size_t i = 0; i < words.in.size(); ++i) words.in[i] = static_cast<uint32_t>(i);
  run_text(kernel_text(body), words, threads);
  return words;
}

// The message of the Error that running `body` throws; empty if it throws none.
template <class Error>
std::string message_of(const std::string& body) {
  try {
    run_body(body);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace tidemark::ptx

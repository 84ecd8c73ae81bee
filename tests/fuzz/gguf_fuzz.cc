// Any bytes as a GGUF file: opened, all its tensors and values read, and taken as a Llama. A
// DataError is fine.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "models/checkpoint/gguf_llama.h"
#include "tests/fuzz/within_input.h"

namespace {

// Whole, and again from the middle: ranges may begin within blocks.
void read_all(tidemark::WeightSource& source) {
  for (const tidemark::WeightEntry& entry : source.entries()) {
    if (!entry.dtype) continue;
    const auto elements = static_cast<size_t>(entry.shape.elements());
    std::vector<float> values(elements), rest(elements - elements / 2);
    source.read(entry, std::as_writable_bytes(std::span(values)));
    source.read(entry, tidemark::Bytes(static_cast<int64_t>(4 * (elements / 2))),
                std::as_writable_bytes(std::span(rest)));
    const auto half = std::as_bytes(std::span(values).subspan(elements / 2));
    const auto again = std::as_bytes(std::span(rest));
    if (!std::equal(half.begin(), half.end(), again.begin(), again.end())) std::abort();
  }
}

void read_values(tidemark::GgufFile& file, size_t size) {
  for (const char* key : {"u8", "i64", "f32", "bool", "text", "texts", "numbers", "nested"}) {
    if (!file.has(key)) continue;
    allow_errors_within(size, [&] { (void)file.count(key); });
    allow_errors_within(size, [&] { (void)file.number(key); });
    allow_errors_within(size, [&] { (void)file.flag(key); });
    allow_errors_within(size, [&] { (void)file.text(key); });
    allow_errors_within(size, [&] { (void)file.texts(key); });
    allow_errors_within(size, [&] { (void)file.numbers(key); });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const int memory = memfd_create("gguf", 0);
  static const std::string path = "/proc/self/fd/" + std::to_string(memory);
  if (memory < 0 || ftruncate(memory, 0) != 0 ||
      pwrite(memory, data, size, 0) != static_cast<ssize_t>(size)) {
    std::abort();
  }
  allow_errors_within(size, [&] {
    tidemark::GgufFile file(path);
    read_values(file, size);
    read_all(file);
  });
  allow_errors_within(size, [&] {
    tidemark::GgufLlama llama(path);
    read_all(llama);
  });
  return 0;
}

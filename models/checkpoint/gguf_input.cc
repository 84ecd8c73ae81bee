#include "models/checkpoint/gguf_input.h"

namespace tidemark {

uint64_t size_of(GgufKind kind) {
  switch (kind) {
    case GgufKind::kUInt8:
    case GgufKind::kInt8:
    case GgufKind::kBool: return 1;
    case GgufKind::kUInt16:
    case GgufKind::kInt16: return 2;
    case GgufKind::kUInt32:
    case GgufKind::kInt32:
    case GgufKind::kFloat32: return 4;
    case GgufKind::kUInt64:
    case GgufKind::kInt64:
    case GgufKind::kFloat64: return 8;
    case GgufKind::kText:
    case GgufKind::kArray: break;
  }
  return 0;
}

void GgufInput::need(uint64_t count, uint64_t size) const {
  if (count > rest() / size) {
    fail(std::to_string(count) +
         (size == 1 ? " bytes" : " times " + std::to_string(size) + " bytes") +
         " are declared, but the file has only " + std::to_string(rest()) + " more");
  }
}

void GgufInput::skip(uint64_t count, uint64_t size) {
  need(count, size);
  if (!file_.seek(file_.position() + static_cast<int64_t>(count * size)))
    fail("cannot be read");
}

std::string GgufInput::text(uint64_t most) {
  const auto length = number<uint64_t>();
  need(length, 1);
  if (length > most) {
    fail(std::to_string(length) + " bytes of text; at most " + std::to_string(most) +
         " are allowed");
  }
  std::string text(static_cast<size_t>(length), '\0');
  file_.read_exact({reinterpret_cast<uint8_t*>(text.data()), text.size()});
  return text;
}

GgufKind GgufInput::kind() {
  const auto number = this->number<uint32_t>();
  if (number > static_cast<uint32_t>(GgufKind::kFloat64)) {
    fail("is of type " + std::to_string(number) + ", which no value has");
  }
  return static_cast<GgufKind>(number);
}

}  // namespace tidemark

#include <cstdio>

#include "runtime/core/shape.h"
#include "runtime/core/units.h"

int main() {
  const tidemark::Shape images{8, 224, 224, 3};
  const tidemark::Bytes bytes(images.elements() * 4);
  std::printf("%s: %s\n", images.to_string().c_str(), tidemark::format_bytes(bytes).c_str());
  return bytes == tidemark::parse_bytes("4.59375 MiB") ? 0 : 1;
}

#include "ops/register.h"

namespace tidemark {

#define TIDEMARK_OPERATOR(name) extern const OpDef k##name;
#include "ops/operators.inc"

namespace {

constexpr const OpDef* kOperators[] = {
#define TIDEMARK_OPERATOR(name) &k##name,
#include "ops/operators.inc"
};

}  // namespace

std::span<const OpDef* const> all_operators() { return kOperators; }

const OpDef* find_operator(std::string_view name) {
  for (const OpDef* op : kOperators) {
    if (name == op->name) return op;
  }
  return nullptr;
}

}  // namespace tidemark

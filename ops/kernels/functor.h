// How a kernel on any device makes its functor.
#pragma once

#include <type_traits>

#include "ops/registry/attrs.h"

namespace tidemark {

// Default-constructs F, or calls F::from(scalars) if F has it.
template <class F>
F make_functor(const Scalars& scalars) {
  if constexpr (std::is_empty_v<F>) {
    return F();
  } else {
    return F::from(scalars);
  }
}

}  // namespace tidemark

// How kernels of any device get at a functor.
#pragma once

#include <type_traits>

#include "ops/registry/attrs.h"

namespace tidemark {

// A functor without members, or one made from the call's scalars by F::from(scalars).
template <class F>
F make_functor(const Scalars& scalars) {
  if constexpr (std::is_empty_v<F>) {
    return F();
  } else {
    return F::from(scalars);
  }
}

}  // namespace tidemark

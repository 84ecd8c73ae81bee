// All elementwise operators.
#pragma once

#include "ops/elementwise/arithmetic.h"  // IWYU pragma: export
#include "ops/elementwise/compare.h"     // IWYU pragma: export
#include "ops/elementwise/gelu.h"        // IWYU pragma: export
#include "ops/elementwise/inplace.h"     // IWYU pragma: export
#include "ops/elementwise/relu.h"        // IWYU pragma: export
#include "ops/elementwise/silu_mul.h"    // IWYU pragma: export
#include "ops/elementwise/unary.h"       // IWYU pragma: export

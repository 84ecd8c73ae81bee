// Updates as PyTorch computes them, for the tests of this folder.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "ops/optimizer/optimizer.h"

namespace tidemark::testing {

using Values = std::vector<float>;

// One of each kind that the scalars select.
inline std::vector<SgdOptions> sgd_rules() {
  return {{.lr = 0.1},
          {.lr = 0.1, .weight_decay = 0.01},
          {.lr = 0.1, .momentum = 0.9},
          {.lr = 0.1, .momentum = 0.9, .dampening = 0.5},
          {.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4},
          {.lr = 0.1, .momentum = 0.9, .nesterov = true},
          {.lr = 0.1, .momentum = 0.9, .weight_decay = 5e-4, .nesterov = true}};
}

// torch/optim/sgd.py, _single_tensor_sgd, operation by operation on float32 values.
inline void reference_sgd(Values& param, Values grad, Values& buffer, const SgdOptions& o,
                          bool first) {
  for (size_t i = 0; i < param.size(); ++i) {
    volatile float d = grad[i];  // volatile: every operation rounds, none is contracted
    if (o.weight_decay != 0) {
      volatile float decay = static_cast<float>(o.weight_decay) * param[i];
      d = d + decay;
    }
    if (o.momentum != 0) {
      if (first) {
        buffer[i] = d;
      } else {
        volatile float kept = static_cast<float>(o.momentum) * buffer[i];
        volatile float added = static_cast<float>(1 - o.dampening) * d;
        buffer[i] = kept + added;
      }
      if (o.nesterov) {
        volatile float ahead = static_cast<float>(o.momentum) * buffer[i];
        d = d + ahead;
      } else {
        d = buffer[i];
      }
    }
    volatile float update = static_cast<float>(-o.lr) * d;
    param[i] = param[i] + update;
  }
}

// torch/optim/adam.py, _single_tensor_adam (AdamW: adamw.py), operation by operation on float32
// values.
inline void reference_adam(Values& param, Values grad, Values& m, Values& v,
                           const AdamOptions& o, int step) {
  const double correction1 = 1 - std::pow(o.beta1, step);
  const double correction2 = 1 - std::pow(o.beta2, step);
  for (size_t i = 0; i < param.size(); ++i) {
    volatile float p = param[i], d = grad[i];  // volatile: every operation rounds
    if (o.weight_decay != 0) {
      if (o.decoupled) {
        p = p * static_cast<float>(1 - o.lr * o.weight_decay);
      } else {
        volatile float decay = static_cast<float>(o.weight_decay) * p;
        d = d + decay;
      }
    }
    volatile float difference = d - m[i];
    volatile float moved = static_cast<float>(1 - o.beta1) * difference;
    m[i] = m[i] + moved;
    volatile float kept = static_cast<float>(o.beta2) * v[i];
    volatile float share = static_cast<float>(1 - o.beta2) * d;
    volatile float added = share * d;
    v[i] = kept + added;
    volatile float root = std::sqrt(v[i]);
    volatile float corrected = root / static_cast<float>(std::sqrt(correction2));
    volatile float denominator = corrected + static_cast<float>(o.eps);
    volatile float step_m = static_cast<float>(-(o.lr / correction1)) * m[i];
    volatile float update = step_m / denominator;
    param[i] = p + update;
  }
}

}  // namespace tidemark::testing

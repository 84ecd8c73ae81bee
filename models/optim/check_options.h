// Private to optim/: checks of the update rules' options and parameters.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "models/nn/module.h"
#include "ops/optimizer/optimizer.h"
#include "runtime/core/errors.h"

namespace tidemark {

[[noreturn]] inline void refuse_option(const std::string& rule, const std::string& field,
                                       double value, const std::string& what) {
  throw UsageError("[" + rule + "] " + field + ": " + std::to_string(value) + "; " + what);
}

// Also rejects NaN.
inline void check_not_negative(const std::string& rule, const std::string& field,
                               double value) {
  if (std::isfinite(value) && value >= 0) return;
  refuse_option(rule, field, value, "must be finite and not negative");
}

// Returns the parameters.
inline std::vector<NamedTensor> float32_only(const std::string& rule,
                                             std::vector<NamedTensor> parameters) {
  for (const NamedTensor& parameter : parameters) {
    if (parameter.tensor.dtype() == DType::kFloat32) continue;
    throw UsageError("[" + rule + "] the parameter " + parameter.name + " is " +
                     std::string(to_string(parameter.tensor.dtype())) + ", not float32");
  }
  return parameters;
}

inline const SgdOptions& checked(const SgdOptions& options) {
  check_not_negative("sgd", "lr", options.lr);
  check_not_negative("sgd", "momentum", options.momentum);
  if (!std::isfinite(options.dampening)) {
    refuse_option("sgd", "dampening", options.dampening, "must be finite");
  }
  check_not_negative("sgd", "weight_decay", options.weight_decay);
  if (options.nesterov && options.momentum == 0) {
    throw UsageError("[sgd] nesterov needs momentum");
  }
  return options;
}

inline const AdamOptions& checked(const AdamOptions& options) {
  check_not_negative("adam", "lr", options.lr);
  for (const auto& [field, beta] :
       {std::pair("beta1", options.beta1), std::pair("beta2", options.beta2)}) {
    if (!(beta >= 0 && beta < 1)) {
      refuse_option("adam", field, beta, "must be at least 0 and below 1");
    }
  }
  check_not_negative("adam", "eps", options.eps);
  check_not_negative("adam", "weight_decay", options.weight_decay);
  return options;
}

}  // namespace tidemark

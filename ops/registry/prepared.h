// What a call needs besides its tensors, found once for each signature: shapes of the outputs,
// kernel, workspace, cost.
//
// Threads: a session's issuing thread. Sessions share kernels.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "ops/registry/op.h"
#include "runtime/cost/cost_model.h"
#include "runtime/session/session.h"

namespace tidemark {

struct Prepared {
  std::vector<TensorMeta> outputs{};
  std::shared_ptr<const PreparedKernel> kernel{};  // null on devices without data
  Bytes workspace{0};
  CostKey cost_key = 0;
  std::string_view algorithm{};  // in the session's table; empty: the default
};

// For `query` without outputs. Valid until the next call. Throws UsageError (shapes, types, no
// kernel for the session's device, an algorithm that the call does not have).
const Prepared& look_up(Session& session, const OpDef& op, const OpQuery& query);

}  // namespace tidemark

#include "examples/compare/carried_state.h"

#include "models/checkpoint/weights.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"

namespace tidemark::compare {

CarriedState carry_out(Training& training, int64_t step) {
  CarriedState state;
  state.step = step;
  Session& session = Session::current();
  state.random_offset = session.random_offset();
  const CarriedParts parts = training.carried();
  state.update_counts = parts.optimizer->update_counts();
  state.learning_rate = parts.optimizer->learning_rate();
  if (!session.device().has_data()) return state;
  for (const NamedTensor& named : without_shared(parts.tensors)) {
    state.values.push_back(values_of(named.tensor));
  }
  state.checksum = training.checksum().value_or("");
  return state;
}

void carry_in(Training& training, const CarriedState& state) {
  Session& session = Session::current();
  const CarriedParts parts = training.carried();
  parts.optimizer->set_update_counts(state.update_counts);
  parts.optimizer->set_learning_rate(state.learning_rate);
  session.set_random_offset(state.random_offset);
  if (!session.device().has_data()) return;
  const std::vector<NamedTensor> tensors = without_shared(parts.tensors);
  TIDEMARK_CHECK(tensors.size() == state.values.size(), "the state is of the same network");
  for (size_t i = 0; i < tensors.size(); ++i) assign_values(tensors[i].tensor, state.values[i]);
  TIDEMARK_CHECK(training.checksum().value_or("") == state.checksum,
                 "the carried-over state has the same bits");
}

}  // namespace tidemark::compare

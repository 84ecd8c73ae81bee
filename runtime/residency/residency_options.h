// How a session's memory is managed: switches of Residency.
#pragma once

namespace tidemark {

struct ResidencyOptions {
  // Off: storages are counted and freed, but never released; an operator that does not fit is
  // an error.
  bool managed = true;
  // A dry run has shown that the program fits. Storages that only recipes could read are
  // dropped, so that memory use equals that without management.
  bool known_to_fit = false;
  bool evict = true;
  // Off: costs come only from the device's profile, so that decisions match the simulator's
  // step for step.
  bool learn_costs = true;
  // On devices where timing costs time, times all operators, for timelines. Off: once costs are
  // learnt, a step that releases nothing times a sample (measurements.h).
  bool time_all = false;
  // Off: compute waits for each copy at once.
  bool overlap = true;
  // Compacts blocks instead of releasing storages, where that is cheaper.
  bool compact = true;
  // Measures the host's time in StepStats::memory_time, at a small cost.
  bool time_memory = false;
  // Overwrite freed blocks with a pattern (debugging; devices with data).
  bool poison = false;
};

}  // namespace tidemark

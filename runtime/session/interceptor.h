// Stands between a program and the residency manager: sees each operator, upload and read in
// program order, and may put off running the former two. What the session does by itself
// without one is to run each at once.
//
// Threads: the session's issuing thread.
#pragma once

#include <memory>

#include "runtime/residency/residency.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {

class StepInterceptor : public StorageListener {
 public:
  // Calls and uploads outside of steps are not told.
  virtual void begin_step() = 0;
  // To run it, now or by the end of the step. Outputs are kEmpty until then.
  virtual void call(const IntrusivePtr<Recipe>& call) = 0;
  virtual void upload(Storage& storage, const void* from,
                      std::shared_ptr<const void> keep_alive) = 0;
  // On return everything issued so far has been handed to the device.
  virtual void before_read(Storage& storage) = 0;
  virtual void end_step() = 0;  // the same
  // The step threw. What was put off is run, if it can be.
  virtual void abort_step() = 0;
  // Of all storages, in steps and between them.
  void on_event(const StorageEvent& /*event*/) noexcept override {}
  // Did the last step run by a plan from beginning to end?
  virtual bool planned() const = 0;
};

}  // namespace tidemark

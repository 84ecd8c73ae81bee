// Calls a function with each call of the program, before any work is done for that call.
//
//   const CallListener counts(session, [&](const Recipe&) { ++calls; });
//
// Threads: the session's issuing thread. The session outlives it.
#pragma once

#include <functional>
#include <utility>

#include "runtime/residency/residency.h"
#include "runtime/residency/storage_event.h"
#include "runtime/session/session.h"
#include "runtime/tensor/recipe.h"

namespace tidemark {

class CallListener final : public StorageListener {
 public:
  // `seen` may neither throw nor use the session.
  CallListener(Session& session, std::function<void(const Recipe&)> seen)
      : residency_(session.residency()), seen_(std::move(seen)) {
    residency_.storage_events().listen(*this);
  }
  ~CallListener() override { residency_.storage_events().ignore(*this); }
  CallListener(const CallListener&) = delete;
  CallListener& operator=(const CallListener&) = delete;

  void on_event(const StorageEvent& event) noexcept override {
    if (event.kind == StorageEvent::Kind::kCall) seen_(*event.call);
  }

 private:
  Residency& residency_;
  const std::function<void(const Recipe&)> seen_;
};

}  // namespace tidemark

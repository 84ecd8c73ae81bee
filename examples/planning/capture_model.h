// A training step of a network by name, captured on the simulator.
//
// Threads: the calling thread; makes a session of its own.
#pragma once

#include <string>
#include <vector>

#include "runtime/schedule/step_trace.h"

namespace tidemark {

struct CaptureRequest {
  std::string model;
  int64_t batch = 32;
  int64_t image_size = 0;             // of image networks; 0: 224, of clips 112
  int64_t length = 0;                 // of text networks: of a sequence; 0: 128
  std::string optimizer = "sgd";      // or "adam", "adamw", "adam-unfused"
  std::string profile = "a100-80gb";  // of the simulated device, which prices the operators
};

// Of networks that can be captured.
std::vector<std::string> capturable_models();

// The second step of training: state of the optimizer is there by then. Throws UsageError for a
// model, optimizer or profile that there is not.
StepTrace capture_model(const CaptureRequest& request);

}  // namespace tidemark

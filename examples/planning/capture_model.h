// Captures a training step of a named network on the simulator.
//
// Threads: the calling thread; makes its own session.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/schedule/step_trace.h"

namespace tidemark {

struct CaptureRequest {
  std::string model;
  int64_t batch = 32;
  int64_t image_size = 0;             // for image networks; 0: 224, for clips 112
  int64_t length = 0;                 // sequence length of text networks; 0: 128
  std::string optimizer = "sgd";      // or "adam", "adamw", "adam-unfused"
  double momentum = 0.9;              // of "sgd"; 0: it keeps no state
  std::optional<double> clip;         // of text networks; none: as train_bert
  std::string profile = "a100-80gb";  // simulated device, which determines operator costs
};

// The names of networks that can be captured.
std::vector<std::string> capturable_models();

// Captures the second training step, when optimizer state exists. Throws UsageError for an
// unknown model, optimizer or profile, and for `clip` of a network that is none of text.
StepTrace capture_model(const CaptureRequest& request);

}  // namespace tidemark

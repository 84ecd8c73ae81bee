// A network and its training in the papers' experiments, on tensors without data. Image
// networks take 224 x 224 images of 1000 classes and use Adam, as in the DELTA paper. BERT uses
// AdamW and clipped gradients; it predicts masked words or (squad) where an answer begins and
// ends.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/session/dry_run.h"

namespace tidemark {

struct PaperModel {
  std::string network;  // of image_model_names(), or one of bert_options()
  int64_t batch = 0;
  int64_t length = 0;  // of BERT's sequences, in tokens
  bool squad = false;  // BERT's task
  bool eager = false;  // BERT: attention as in frameworks, which keeps its scores
  bool is_text() const { return length > 0; }
};

class PaperNetwork {
 public:
  virtual ~PaperNetwork() = default;
  // Call within Session::step. Waits for the loss, as programs that print it do.
  virtual void step() = 0;
};

// Makes the network in the current session. Throws UsageError, OutOfMemory.
std::unique_ptr<PaperNetwork> make_network(const PaperModel& model);

// Two steps: the second is the first that finds all optimizer state in place.
Program program_of(const PaperModel& model);

}  // namespace tidemark

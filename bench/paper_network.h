// A network and how it is trained in the papers' experiments, on tensors without data. Images
// are 224 x 224 of 1000 classes, with Adam, as in the DELTA paper; BERT with AdamW and clipped
// gradients, guessing masked words or (squad) where an answer begins and ends.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "runtime/session/dry_run.h"

namespace tidemark {

struct PaperModel {
  std::string network;  // of image_model_names(), or of bert_names()
  int64_t batch = 0;
  int64_t length = 0;  // of BERT's sequences
  bool squad = false;  // BERT's task
  bool eager = false;  // BERT: attention as frameworks have it, which keeps its scores
  bool is_text() const { return length > 0; }
};

class PaperNetwork {
 public:
  virtual ~PaperNetwork() = default;
  // To be called within Session::step; waits for the loss, as programs do that print it.
  virtual void step() = 0;
};

// In the current session. Throws UsageError, OutOfMemory.
std::unique_ptr<PaperNetwork> make_network(const PaperModel& model);

// Two steps: the second is the first that finds all state in its place.
Program program_of(const PaperModel& model);

}  // namespace tidemark

// Trains a text network, such as BERT or GPT-2, under a memory budget and says what that took.
// `train_bert --help` explains.
//
//   $ train_bert --budget 50%
//
// The run itself is examples/common/run.h; what it runs is examples/common/bert_job.cc.
#include "examples/common/bert_job.h"
#include "examples/common/run.h"

int main(int argc, char** argv) {
  return tidemark::run_training("train_bert", argc, argv, tidemark::parse_bert_flags,
                                tidemark::open_bert_job);
}

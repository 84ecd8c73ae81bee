// Trains BERT or GPT-2 under a memory budget and says what that took. `train_bert --help`
// explains.
//
//   $ train_bert --budget 50%
//
// The run itself is examples/common/run.h; what it runs is examples/common/bert_job.cc.
#include <optional>

#include "examples/common/bert_job.h"
#include "examples/common/program.h"
#include "examples/common/run.h"

int main(int argc, char** argv) {
  return tidemark::run_program("train_bert", [&] {
    int exit_code = 0;
    const std::optional<tidemark::BertFlags> flags =
        tidemark::parse_bert_flags(argc, argv, exit_code);
    if (!flags) return exit_code;
    return tidemark::run_job("train_bert", *flags, [&flags](bool with_data) {
      return tidemark::open_bert_job(*flags, with_data);
    });
  });
}

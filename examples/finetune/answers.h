// Answers to --generate's prompts.
//
// Threads: the session's issuing thread.
#pragma once

#include "examples/finetune/finetune_flags.h"
#include "models/llama.h"
#include "models/text/tokenizer/model_tokenizer.h"
#include "runtime/session/session.h"

namespace tidemark {

// Throws UsageError if a prompt is empty, or longer than --seq-length.
void check_prompts(const FinetuneFlags& flags, const ModelTokenizer& model);

// Prints each prompt's answer as it is generated. If the model has a chat template, a prompt is
// what a user says; otherwise it is the beginning of a text. Each token is one step of the
// session. REQUIRES: check_prompts().
void print_answers(const FinetuneFlags& flags, Llama& network, const ModelTokenizer& model,
                   Session& session);

// For dry runs on devices without data: the memory that answering takes, at the longest
// prompts.
void simulate_answer(const FinetuneFlags& flags, Llama& network);

}  // namespace tidemark

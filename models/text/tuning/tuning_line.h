// One line of a JSONL file as a TuningExample.
//
// Functions without state.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "models/text/tuning/tuning_data.h"

namespace tidemark {

// Throws about a line: what is wrong, and how many bytes into it.
using LineFault = std::function<void(const std::string& what, size_t within)>;

// The form of a line, by its members.
TuningData::Form form_of_line(std::string_view line, const LineFault& fail);

// REQUIRES: `form` is not kPlainText.
TuningExample example_of_line(std::string_view line, TuningData::Form form,
                              const ModelTokenizer& model, const LineFault& fail);

}  // namespace tidemark

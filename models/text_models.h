// Language models, by name: BERT and XLM-R, GPT-2.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "models/bert.h"
#include "models/gpt2.h"

namespace tidemark {

using TextNetworkOptions = std::variant<BertOptions, Gpt2Options>;

const std::vector<std::string>& text_model_names();
bool is_text_model(const std::string& name);

// The sizes of the network called `name`. For unknown names, throws UsageError that lists the
// known ones.
TextNetworkOptions text_model_options(const std::string& name);

}  // namespace tidemark

// Text networks by name, or as a config.json describes them.
//
// Threads: any.
#pragma once

#include <string>
#include <vector>

#include "models/text_model.h"

namespace tidemark {

const std::vector<std::string>& text_model_names();
bool is_text_model(const std::string& name);

// The network called `name`; lives as long as the process. For unknown names, throws UsageError
// that lists the known ones.
const TextModelInfo& text_model(const std::string& name);

// The network with the sizes and the norms' eps of a config.json from Hugging Face. Throws
// DataError, naming the key, if a key is missing or asks for something that the network does
// not implement.
TextModelInfo read_hugging_face_config(const std::string& path);
// The same from the file's text; `from` is the name used in a DataError.
TextModelInfo parse_hugging_face_config(const std::string& json, const std::string& from);

}  // namespace tidemark

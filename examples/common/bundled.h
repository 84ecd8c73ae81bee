// The data that come with the project.
#pragma once

#include <string>

namespace tidemark {

// The file `name` of data/, such as "digits/digits.csv.gz": installed beside the program, or
// where this was built from.
std::string bundled_path(const std::string& name);

}  // namespace tidemark

// The data that come with the project, found from any working directory.
#pragma once

#include <string>

namespace tidemark {

// Path of the file `name` of data/, such as "digits/digits.csv.gz": installed beside the
// program, or in the source tree of the build. Throws DataError, naming both places, if neither
// has it.
std::string bundled_path(const std::string& name);

// Returns `path` if that file exists; otherwise, for "data/NAME", the bundled file. Throws
// DataError, naming the places searched.
std::string given_or_bundled(const std::string& path);

}  // namespace tidemark

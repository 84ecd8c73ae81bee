// The data that come with the project, wherever a program is started.
#pragma once

#include <string>

namespace tidemark {

// The file `name` of data/, such as "digits/digits.csv.gz": installed beside the program, or
// where this was built from. Throws DataError, naming both places, if it is in neither.
std::string bundled_path(const std::string& name);

// `path` if there is such a file; else, of "data/NAME", the bundled file. Throws DataError,
// naming the places looked at.
std::string given_or_bundled(const std::string& path);

}  // namespace tidemark

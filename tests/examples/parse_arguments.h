// Flags as a program's main gets them.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tidemark::testing {

// parse(argc, argv, exit_code) of a program's arguments.
template <class Parse>
auto parse_arguments(const Parse& parse, std::vector<std::string> arguments, int& exit_code) {
  arguments.insert(arguments.begin(), "program");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return parse(static_cast<int>(argv.size()), argv.data(), exit_code);
}

// The flags; the test fails if `parse` refuses them.
template <class Parse>
auto parsed_arguments(const Parse& parse, const std::vector<std::string>& arguments) {
  int exit_code = 0;
  auto flags = parse_arguments(parse, arguments, exit_code);
  EXPECT_TRUE(flags) << exit_code;
  return std::move(flags).value_or(typename decltype(flags)::value_type());
}

}  // namespace tidemark::testing

// What lists of methods have in common: their names can be given as flags.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tidemark::planner {

// `find`: a method by its name, or null.
template <class Methods, class Find>
void expect_names_that_are_flags(const Methods& methods, const Find& find) {
  std::set<std::string> names;
  for (const auto& method : methods) {
    EXPECT_EQ(method.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              std::string::npos)
        << method.name;
    EXPECT_TRUE(names.insert(method.name).second) << method.name << " appears twice";
    EXPECT_EQ(find(method.name), &method);
  }
  EXPECT_EQ(methods[0].name, "default");
  EXPECT_EQ(find("magic"), nullptr);
}

}  // namespace tidemark::planner

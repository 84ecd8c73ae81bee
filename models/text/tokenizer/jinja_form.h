// A Jinja template in a form in which templates that differ in layout alone are equal, to look
// for parts of it.
//
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace tidemark::tokenizers {

// Quotes around strings in the form; strings are without escapes.
inline constexpr char kJinjaQuote = '\x1F';

// Drops comments, and white space as Jinja does it with trim_blocks and lstrip_blocks. Drops
// white space in expressions, joins 'a' + 'b', and writes message['role'] for message.role. A
// template that does not end well gives some form, too.
std::string jinja_form(std::string_view jinja);

// Whether the form has this part, with ' for quotes.
bool has_part(std::string_view form, std::string part);

}  // namespace tidemark::tokenizers

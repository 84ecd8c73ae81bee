// What a Jinja template for chats consists of, without what concerns tools.
//
// Pure functions; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tidemark::tokenizers {

// The expressions, statements and texts of a form (jinja_form.h), in order. Left out: branches
// that only chats with tools reach, branches that refuse a chat (raise_exception), and loops
// without content. If that leaves an else alone, its content stands by itself. Takes time that
// grows with the size of the form.
std::vector<std::string> template_pieces(std::string_view form);

// A piece with ' for the quotes of a form.
std::string in_quotes(std::string piece);

// What the * of a pattern stands for; nothing if the piece is another. A pattern has at most
// one *. Within a string, it stands for a part of that string.
std::optional<std::string> match_piece(std::string_view pattern, std::string_view piece);

}  // namespace tidemark::tokenizers

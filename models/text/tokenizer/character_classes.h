// Classes of code points as Hugging Face's tokenizers have them, beyond those of unicode.h.
//
// Pure functions; any thread.
#pragma once

namespace tidemark::tokenizers {

bool is_space(char32_t code);            // Unicode's White_Space
bool is_number(char32_t code);           // general category N
bool is_mark(char32_t code);             // general category M
bool is_nonspacing_mark(char32_t code);  // general category Mn
bool is_word(char32_t code);             // \w of Unicode's regular expressions
// What BERT's normalizer drops: controls, formats and private characters, but not white space.
bool is_bert_control(char32_t code);

}  // namespace tidemark::tokenizers

#include "models/text/tokenizer/character_classes.h"

#include <utf8proc.h>

namespace tidemark::tokenizers {
namespace {

utf8proc_category_t category(char32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

bool is_within(char32_t code, char32_t first, char32_t last) {
  return code >= first && code <= last;
}

// Symbols that count as letters: circled, squared and the like.
bool is_enclosed_letter(char32_t code) {
  return is_within(code, 0x24B6, 0x24E9) || is_within(code, 0x1F130, 0x1F149) ||
         is_within(code, 0x1F150, 0x1F169) || is_within(code, 0x1F170, 0x1F189);
}

}  // namespace

bool is_space(char32_t code) {
  if (is_within(code, '\t', '\r') || code == 0x85) return true;
  const utf8proc_category_t of = category(code);
  return of == UTF8PROC_CATEGORY_ZS || of == UTF8PROC_CATEGORY_ZL || of == UTF8PROC_CATEGORY_ZP;
}

bool is_number(char32_t code) {
  const utf8proc_category_t of = category(code);
  return of >= UTF8PROC_CATEGORY_ND && of <= UTF8PROC_CATEGORY_NO;
}

bool is_mark(char32_t code) {
  const utf8proc_category_t of = category(code);
  return of >= UTF8PROC_CATEGORY_MN && of <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t code) { return category(code) == UTF8PROC_CATEGORY_MN; }

bool is_word(char32_t code) {
  const utf8proc_category_t of = category(code);
  // Letters, marks, decimal and letter-like numbers have consecutive categories.
  return (of >= UTF8PROC_CATEGORY_LU && of <= UTF8PROC_CATEGORY_NL) ||
         of == UTF8PROC_CATEGORY_PC || is_within(code, 0x200C, 0x200D) ||
         is_enclosed_letter(code);
}

bool is_bert_control(char32_t code) {
  if (code == '\t' || code == '\n' || code == '\r') return false;
  const utf8proc_category_t of = category(code);
  return of == UTF8PROC_CATEGORY_CC || of == UTF8PROC_CATEGORY_CF || of == UTF8PROC_CATEGORY_CO;
}

}  // namespace tidemark::tokenizers

// Regular expressions of Oniguruma, which Hugging Face's tokenizers use, in PCRE2's syntax.
//
// Rewritten: \s, \w, \v, \u0041, {,n}. Refused, as the two libraries read them differently: \h,
// \b, (?m), {n,m}+, nested and intersected classes; and \K.
//
// Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

namespace tidemark::tokenizers {

struct OnigurumaAsPcre2 {
  std::string text;     // for PCRE2, with UTF and UCP
  std::string refused;  // what is not supported; empty if all is
};
OnigurumaAsPcre2 oniguruma_as_pcre2(std::string_view pattern);

}  // namespace tidemark::tokenizers

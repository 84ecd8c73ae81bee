#include "models/text_models.h"

#include <algorithm>
#include <functional>

#include "models/named.h"

namespace tidemark {
namespace {

struct Family {
  const std::vector<std::string>& names;
  std::function<TextNetworkOptions(const std::string&)> options;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all{{bert_names(), bert_options},
                                       {gpt2_names(), gpt2_options}};
  return all;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

const std::vector<std::string>& text_model_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Family& family : families()) {
      all.insert(all.end(), family.names.begin(), family.names.end());
    }
    return all;
  }();
  return names;
}

bool is_text_model(const std::string& name) { return contains(text_model_names(), name); }

TextNetworkOptions text_model_options(const std::string& name) {
  for (const Family& family : families()) {
    if (contains(family.names, name)) return family.options(name);
  }
  throw_unknown_model(name, text_model_names());
}

}  // namespace tidemark

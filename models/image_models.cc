#include "models/image_models.h"

#include <functional>

#include "models/alexnet.h"
#include "models/efficientnet.h"
#include "models/googlenet.h"
#include "models/mnasnet.h"
#include "models/mobilenet.h"
#include "models/resnet.h"
#include "models/unknown_model.h"
#include "models/vgg.h"
#include "models/vision_transformer.h"

namespace tidemark {
namespace {

struct Entry {
  std::string name;
  std::function<std::unique_ptr<ImageModel>(const ImageModelOptions&, ParameterInit&)> make;
};

std::vector<Entry> make_table() {
  std::vector<Entry> table;
  for (const std::string& name : resnet_names()) {
    table.push_back({name, [name](const ImageModelOptions& options, ParameterInit& init) {
                       return make_resnet(name, options, init);
                     }});
  }
  table.push_back({"efficientnet_b0", make_efficientnet_b0});
  table.push_back({"mobilenet_v2", make_mobilenet_v2});
  table.push_back({"mnasnet1_0", make_mnasnet1_0});
  table.push_back({"alexnet", make_alexnet});
  table.push_back({"vgg11", make_vgg11});
  table.push_back({"vgg16", make_vgg16});
  table.push_back({"googlenet", make_googlenet});
  table.push_back({"vit_b_16", make_vit_b_16});
  return table;
}

const std::vector<Entry>& table() {
  static const std::vector<Entry> entries = make_table();
  return entries;
}

}  // namespace

const std::vector<std::string>& image_model_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Entry& entry : table()) all.push_back(entry.name);
    return all;
  }();
  return names;
}

std::unique_ptr<ImageModel> make_image_model(const std::string& name,
                                             const ImageModelOptions& options,
                                             ParameterInit& init) {
  for (const Entry& entry : table()) {
    if (entry.name == name) return entry.make(options, init);
  }
  throw_unknown_model(name, image_model_names());
}

}  // namespace tidemark

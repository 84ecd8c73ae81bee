#include "models/image_models.h"

#include <functional>

#include "models/alexnet.h"
#include "models/efficientnet.h"
#include "models/googlenet.h"
#include "models/mnasnet.h"
#include "models/mobilenet.h"
#include "models/named.h"
#include "models/resnet.h"
#include "models/vgg.h"
#include "models/vision_transformer.h"

namespace tidemark {
namespace {

using Make =
    std::function<std::unique_ptr<ImageModel>(const ImageModelOptions&, ParameterInit&)>;

std::vector<Named<Make>> make_table() {
  std::vector<Named<Make>> table;
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

const std::vector<Named<Make>>& table() {
  static const std::vector<Named<Make>> entries = make_table();
  return entries;
}

}  // namespace

const std::vector<std::string>& image_model_names() {
  static const std::vector<std::string> names = names_of(table());
  return names;
}

std::unique_ptr<ImageModel> make_image_model(const std::string& name,
                                             const ImageModelOptions& options,
                                             ParameterInit& init) {
  return find_named(table(), name)(options, init);
}

}  // namespace tidemark

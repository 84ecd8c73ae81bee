#include "models/features_classifier.h"

#include "ops/pool/avg_pool2d.h"
#include "ops/view/view.h"

namespace tidemark {

Tensor FeaturesClassifier::forward(const Tensor& images) const {
  const Tensor x = features_.forward(images);
  return classifier_.forward(flatten(adaptive_avg_pool2d(x, pixels_, pixels_)));
}

}  // namespace tidemark

// Networks of two sequences: features over the image, pooled to a few pixels, then a
// classifier. Most of torchvision's networks have this form.
//
// Threads: the session's issuing thread.
#pragma once

#include <string>
#include <utility>

#include "models/image_model.h"
#include "models/nn/conv_blocks.h"

namespace tidemark {

class FeaturesClassifier : public ImageModel {
 public:
  Tensor forward(const Tensor& images) const final;
  int64_t pixels() const final { return pixels_ * pixels_; }

 protected:
  // Pools the features to `pixels` x `pixels`. `features`: their prefix in parameter names.
  explicit FeaturesClassifier(int64_t pixels = 1, std::string features = "features")
      : pixels_(pixels) {
    register_child(std::move(features), features_);
    register_child("classifier", classifier_);
  }

  Sequential features_, classifier_;  // the network's constructor fills both

 private:
  const int64_t pixels_;
};

}  // namespace tidemark

// Networks of two sequences: features over the image, pooled to a few pixels, then a
// classifier. What most of torchvision's are.
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
  // The features are pooled to `pixels` x `pixels`. `features`: what they are called in the
  // names of parameters.
  explicit FeaturesClassifier(int64_t pixels = 1, std::string features = "features")
      : pixels_(pixels) {
    register_child(std::move(features), features_);
    register_child("classifier", classifier_);
  }

  Sequential features_, classifier_;  // to be filled by the constructor of the network

 private:
  const int64_t pixels_;
};

}  // namespace tidemark

#include "models/unet.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/support/values.h"

namespace tidemark::testing {
namespace {

Tensor empty_images(Session& session, const Shape& shape) {
  return session.upload(TensorMeta::contiguous(DType::kFloat32, shape), Category::kData,
                        nullptr, {});
}

// Figure 1 of Ronneberger et al.; Figure 2 of Çiçek et al.
TEST(UNet, PublishedExtents) {
  Session session({.device = "sim:a100-80gb"});
  ParameterInit init(0);
  const auto unet = make_unet(unet_as_published(), init);
  EXPECT_EQ(unet->forward(empty_images(session, {1, 572, 572, 1})).shape(),
            (Shape{1, 388, 388, 2}));
  const auto unet3d = make_unet3d(unet3d_as_published(), init);
  EXPECT_EQ(unet3d->forward(empty_images(session, {1, 116, 132, 132, 3})).shape(),
            (Shape{1, 28, 44, 44, 3}));
}

// Çiçek et al. give 19,069,955 parameters: with a bias for each of the 2,336 channels of the
// convolutions, where normalisation has two values here, and without the 896 biases of
// transposed convolutions.
TEST(UNet, PublishedParameters) {
  Session session({.device = "sim:a100-80gb"});
  ParameterInit init(0);
  EXPECT_EQ(make_unet3d(unet3d_as_published(), init)->parameter_elements(),
            19'069'955 + 2'336 + 896);
  const auto unet = make_unet(unet_as_published(), init);
  EXPECT_EQ(unet->parameter_elements(), 31'036'546);
  std::set<std::string> names;
  for (const NamedTensor& one : unet->parameters()) names.insert(one.name);
  for (const char* name : {"enter.0.conv.weight", "enter.1.norm.bias", "down.3.1.conv.weight",
                           "up.0.bias", "up.3.convs.1.norm.weight", "head.weight"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(UNet, PaddedKeepsTheSize) {
  Session session({.device = "sim:a100-80gb"});
  ParameterInit init(0);
  const auto unet = make_unet({.channels = 3, .classes = 5, .width = 8, .depth = 2}, init);
  EXPECT_EQ(unet->forward(empty_images(session, {2, 12, 20, 3})).shape(),
            (Shape{2, 12, 20, 5}));
}

// In place of a transposed convolution's 2^n weights for each pair of channels, 3^n.
TEST(UNet, UpsamplesInstead) {
  Session session({.device = "sim:a100-80gb"});
  ParameterInit init(0);
  UNetOptions images = unet_as_published(), volumes = unet3d_as_published();
  images.upsample = Interpolation::kLinear;
  volumes.upsample = Interpolation::kNearest;
  const auto unet = make_unet(images, init);
  EXPECT_EQ(unet->parameter_elements(),
            31'036'546 + (9 - 4) * (1024 * 512 + 512 * 256 + 256 * 128 + 128 * 64));
  EXPECT_EQ(unet->forward(empty_images(session, {1, 572, 572, 1})).shape(),
            (Shape{1, 388, 388, 2}));
  const auto unet3d = make_unet3d(volumes, init);
  EXPECT_EQ(unet3d->parameter_elements(),
            19'069'955 + 2'336 + 896 + (27 - 8) * (512 * 512 + 256 * 256 + 128 * 128));
  EXPECT_EQ(unet3d->forward(empty_images(session, {1, 116, 132, 132, 3})).shape(),
            (Shape{1, 28, 44, 44, 3}));
}

TEST(UNet, RefusesWhatItCannotHalve) {
  Session session({.device = "sim:a100-80gb"});
  ParameterInit init(0);
  const auto unet = make_unet({.width = 8, .depth = 2}, init);
  const std::string odd = usage_error([&] {
    unet->forward(empty_images(session, {1, 12, 10, 1}));
  });
  EXPECT_NE(odd.find("cannot halve (1, 6, 5, 16)"), std::string::npos) << odd;
  const std::string rank = usage_error([&] {
    unet->forward(empty_images(session, {1, 12, 12, 12, 1}));
  });
  EXPECT_NE(rank.find("must be (N, H, W, channels)"), std::string::npos) << rank;
}

}  // namespace
}  // namespace tidemark::testing

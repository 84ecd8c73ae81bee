// U-Net for images (Ronneberger et al. 2015, arXiv:1505.04597) and for volumes (Çiçek et al.
// 2016, arXiv:1606.06650): a class for each pixel or voxel.
//
//   enter  conv3, conv3                                        (N, H, W, width) ---- crop ----.
//   down   max pooling by 2, conv3, conv3    twice the channels each time  -- crop --.        |
//   up     transposed convolution by 2, joined with what was cropped, conv3, conv3  <'  <-----'
//          (with `upsample`: interpolation by 2 and a padded conv3 in its place)
//   head   conv1                                               (N, H, W, classes)
//
// Convolutions are followed by batch normalisation and ReLU (Çiçek et al.; Ronneberger et al.
// have no normalisation). As published, they are not padded, so each takes one pixel off every
// side, and what is joined is cropped at the centre; with `padded`, the output is as large as
// the input.
//
// Names: "enter.0.conv.weight", "enter.0.norm.weight", "down.0.1.conv.weight", "up.0.weight",
// "up.0.convs.0.conv.weight", "head.weight".
//
// Threads: the session's issuing thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "models/nn/module.h"
#include "models/nn/parameter_init.h"
#include "ops/pool/upsample.h"

namespace tidemark {

struct UNetOptions {
  int64_t channels = 1;
  int64_t classes = 2;
  int64_t width = 64;  // channels after the second convolution
  int64_t depth = 4;   // poolings
  // Channels change with the first of two convolutions; off: the first of a pair on the way
  // down makes half as many as the second (Çiçek et al.).
  bool widen_first = true;
  bool padded = true;
  // Enlarges by interpolation and a convolution (Odena et al. 2016, doi:10.23915/distill.00003)
  // instead of a transposed convolution.
  std::optional<Interpolation> upsample{};
};

class SegmentationModel : public Module {
 public:
  // images (N, H, W, channels) -> (N, H', W', classes); volumes (N, D, H, W, channels)
  // likewise. Throws UsageError if a level's extent is odd where it is pooled, or too small.
  virtual Tensor forward(const Tensor& images) const = 0;
};

std::unique_ptr<SegmentationModel> make_unet(const UNetOptions& options, ParameterInit& init);
std::unique_ptr<SegmentationModel> make_unet3d(const UNetOptions& options, ParameterInit& init);
// As published: Ronneberger et al. take images of 572 x 572, Çiçek et al. volumes of 116 x 132
// x 132 with three channels and three classes.
UNetOptions unet_as_published();
UNetOptions unet3d_as_published();

}  // namespace tidemark

#include "models/nn/conv3d.h"

#include "ops/conv/conv.h"

namespace tidemark {

Conv3d::Conv3d(const Conv3dOptions& options, ParameterInit& init)
    : options_(options),
      weight_(init.kaiming_normal_fan_out(Shape{
          options.out, options.kernel[0], options.kernel[1], options.kernel[2], options.in})) {
  register_parameter("weight", weight_);
}

Tensor Conv3d::forward(const Tensor& x) const {
  const Scope scope(*this);
  return conv3d(working(x), working(weight_), {},
                {.stride = options_.stride, .padding = options_.padding});
}

}  // namespace tidemark

#include "ops/norm/running_stats.h"

namespace tidemark {

void update_running_stats_cpu(const KernelArgs& args) {
  const int64_t channels = args.input_metas[0].shape[0];
  const float momentum = static_cast<float>(args.scalars[0]);
  const float unbiased = static_cast<float>(args.scalars[1]);
  float* running_mean = args.inout<float>(0);
  float* running_var = args.inout<float>(1);
  const float* mean = args.in<float>(2);
  const float* var = args.in<float>(3);
  for (int64_t c = 0; c < channels; ++c) {
    running_mean[c] += momentum * (mean[c] - running_mean[c]);
    running_var[c] += momentum * (var[c] * unbiased - running_var[c]);
  }
}

}  // namespace tidemark

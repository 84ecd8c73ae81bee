#include <algorithm>

#include "ops/kernels/parallel_for.h"
#include "ops/kernels/strided.h"
#include "ops/random/kernels.h"
#include "ops/random/numbers.h"

namespace tidemark::random {
namespace {

uint64_t offset_of(const KernelArgs& args) { return static_cast<uint64_t>(args.scalars[0]); }

// Drawing costs about as much as moving ten elements.
constexpr int64_t kGrain = kSerialElements / 10;

}  // namespace

PreparedKernel prepare_uniform_cpu(const OpQuery& query) {
  const int64_t n = query.outputs[0].shape.elements();
  const uint64_t seed = static_cast<uint64_t>(query.attr<RandomAttrs>().seed);
  return {Bytes(0), [=](const KernelArgs& args) {
            float* y = args.out<float>(0);
            const float low = static_cast<float>(args.scalars[1]);
            const float high = static_cast<float>(args.scalars[2]);
            parallel_chunks(n, kGrain, [&](int64_t begin, int64_t end) {
              for_random_bits(seed, offset_of(args), begin, end, [&](int64_t i, uint32_t bits) {
                const float value = low + (high - low) * uniform_float(bits);
                y[i] = value < high ? value : low;  // rounding may reach the open end
              });
            });
          }};
}

PreparedKernel prepare_normal_cpu(const OpQuery& query) {
  const int64_t n = query.outputs[0].shape.elements();
  const uint64_t seed = static_cast<uint64_t>(query.attr<RandomAttrs>().seed);
  return {Bytes(0), [=](const KernelArgs& args) {
            float* y = args.out<float>(0);
            const float mean = static_cast<float>(args.scalars[1]);
            const float deviation = static_cast<float>(args.scalars[2]);
            // In pairs; the last may be half.
            parallel_chunks((n + 1) / 2, kGrain, [&](int64_t begin, int64_t end) {
              uint32_t first = 0;
              for_random_bits(seed, offset_of(args), 2 * begin, 2 * end,
                              [&](int64_t i, uint32_t bits) {
                                if (i % 2 == 0) {
                                  first = bits;
                                  return;
                                }
                                const auto pair = normal_pair(first, bits);
                                y[i - 1] = mean + deviation * pair[0];
                                if (i < n) y[i] = mean + deviation * pair[1];
                              });
            });
          }};
}

PreparedKernel prepare_dropout_cpu(const OpQuery& query) {
  const StridedLoop loop = make_loop(query.outputs[0].shape, {&query.inputs[0]});
  const auto& attrs = query.attr<DropoutAttrs>();
  const uint64_t seed = static_cast<uint64_t>(attrs.seed);
  // Kept are the numbers from this one on.
  const uint64_t threshold = static_cast<uint64_t>(attrs.p * 0x1p32);
  const float factor = static_cast<float>(1 / (1 - attrs.p));
  return {Bytes(0), [=](const KernelArgs& args) {
            const float* x = args.in<float>(0);
            float* y = args.out<float>(0);
            const bool flat = loop.flat(1);
            parallel_chunks(loop.elements, kGrain, [&](int64_t begin, int64_t end) {
              for_random_bits(seed, offset_of(args), begin, end, [&](int64_t i, uint32_t bits) {
                const float value = x[flat ? i : loop.offset(0, i)];
                y[i] = bits >= threshold ? value * factor : 0;
              });
            });
          }};
}

}  // namespace tidemark::random

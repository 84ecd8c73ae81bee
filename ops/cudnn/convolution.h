// Convolutions by cuDNN: one plan for a pass and its shapes, chosen once.
//
// Tensors lie as Tidemark's do: x (N, H, W, C), w (K, R, S, C / groups), y (N, P, Q, K), each
// with one more dimension before H for clips; float32 or bfloat16, without gaps; no pass
// reorders them. The choice follows from the problem and the device alone: the first plan in
// the order of cuDNN's heuristics that gives the same bits each time, stays within
// kWorkspaceCap, and rounds no more than the problem allows. Where engines for tensor cores
// are passed over for their workspace, the batch is cut into slices, which take less. Nothing
// is timed.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ops/cudnn/backend.h"
#include "runtime/core/dtype.h"
#include "runtime/core/shape.h"
#include "runtime/core/units.h"

namespace tidemark::cudnn {

// The most scratch that a convolution may ask for, whatever the budget: what a plan does must
// not depend on it. Engines for Hopper take less than 2 MiB mostly; this much lets images of
// three channels be padded for its tensor cores. Those for Ampere copy their inputs first.
inline constexpr Bytes kWorkspaceCap{256 << 20};

enum class Pass : uint8_t { kForward, kGradInput, kGradWeight };

struct Convolution {
  Pass pass = Pass::kForward;
  Shape x, w, y;
  std::vector<int64_t> stride, padding, dilation;  // of each spatial dimension
  bool tf32 = true;  // products of inputs rounded to 10 bits of mantissa, added up in float32
  DType dtype = DType::kFloat32;  // of x, w and y: that, or bfloat16, added up in float32 too
};

// What an engine says of itself.
struct EngineTraits {
  bool deterministic = true;
  bool tensor_cores = false;   // for float32 tensors, TF32; bfloat16 needs no leave for them
  bool down_converts = false;  // inputs to less than TF32
  bool rounds_sums = false;    // adds up in less than float32
  bool transforms = false;     // Winograd or Fourier: other roundings than the direct sum's
  bool compiles = false;       // generates its kernel when the plan is made, for seconds
  Bytes workspace{0};
};

// The rule by which engines are taken.
bool acceptable(const EngineTraits& traits, bool tf32);

class ConvolutionPlan {
 public:
  // Throws DeviceError, naming the shapes, if cuDNN has no acceptable engine.
  ConvolutionPlan(const Convolution& problem, const Descriptor& device);

  Bytes workspace() const { return traits_.workspace; }
  const EngineTraits& traits() const { return traits_; }
  // For logs and tests: "engine 47, rank 0", "engine 58, rank 1, 4 slices".
  const std::string& name() const { return name_; }

  // Enqueues on the handle's stream. One of x, w, y is written, by the pass. All but the
  // workspace are aligned to 16 bytes at least. Throws DeviceError.
  void run(cudnnHandle_t handle, void* x, void* w, void* y, void* workspace) const;

 private:
  std::unique_ptr<Descriptor> plan_;
  std::unique_ptr<Descriptor> adding_;  // of slices that add to the weight's gradient; or null
  EngineTraits traits_;
  std::string name_;
  int64_t slices_ = 1;
  Bytes x_slice_{0}, y_slice_{0};
};

}  // namespace tidemark::cudnn

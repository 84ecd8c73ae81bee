// Convolutions by cuDNN: one plan per pass and shapes, chosen once.
//
// Tensors have Tidemark's layout: x (N, H, W, C), w (K, R, S, C / groups), y (N, P, Q, K), with
// one more dimension before H for clips; float32 or bfloat16, without gaps. No pass reorders
// them. The choice depends on the problem and the device alone: the first plan in cuDNN's
// heuristic order that gives the same bits each time, stays within kWorkspaceCap, and rounds no
// more than the problem allows; plans for tensor cores come first, except for depthwise
// convolutions. If tensor-core engines are rejected for their workspace, or a tensor has 2^31
// elements or more, the batch is cut into slices. Nothing is timed.
//
// A problem may name another plan (other_plans()): then that one is used, whatever its
// workspace, for the whole batch.
//
// A forward pass may also add a bias (K), in float32 before y is rounded. The plan does so if
// an engine for tensor cores can, which saves a pass over y; else adds_bias() is false.
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

// The largest workspace a convolution may use. It is independent of the budget, because the
// budget must not affect a plan's results. Engines for Hopper mostly need less than 2 MiB; this
// limit lets images of three channels be padded for its tensor cores. Engines for Ampere copy
// their inputs first.
inline constexpr Bytes kWorkspaceCap{256 << 20};

enum class Pass : uint8_t { kForward, kGradInput, kGradWeight };

struct Convolution {
  Pass pass = Pass::kForward;
  Shape x, w, y;
  std::vector<int64_t> stride, padding, dilation;  // one value per spatial dimension
  bool tf32 = true;  // inputs may be rounded to 10 bits of mantissa; sums are float32
  DType dtype = DType::kFloat32;  // of x, w and y: float32 or bfloat16; sums are float32
  std::string algorithm{};        // one of other_plans(); empty: by the rule above
  bool bias = false;              // forward: add one, if there is a plan that does
};

// The properties that cuDNN reports for an engine.
struct EngineTraits {
  bool deterministic = true;
  bool tensor_cores = false;   // float32 tensors use TF32; bfloat16 may always use them
  bool down_converts = false;  // rounds inputs to less than TF32
  bool rounds_sums = false;    // accumulates in less than float32
  bool transforms = false;     // Winograd or Fourier: rounds differently from the direct sum
  bool compiles = false;       // takes seconds to generate its kernel when the plan is made
  Bytes workspace{0};
};

// Whether the library may use an engine with these traits.
bool acceptable(const EngineTraits& traits, bool tf32);
// The same for plans that a problem names: transforms and any workspace are allowed, fewer bits
// are not.
bool acceptable_by_name(const EngineTraits& traits, bool tf32);

class ConvolutionPlan {
 public:
  // For the handle's GPU. Throws DeviceError, naming the shapes, if cuDNN has no acceptable
  // engine.
  ConvolutionPlan(const Convolution& problem, cudnnHandle_t handle)
      : ConvolutionPlan(problem, handle, nullptr) {}
  // To look at, on machines without that GPU: run() is undefined.
  ConvolutionPlan(const Convolution& problem, const Descriptor& properties)
      : ConvolutionPlan(problem, nullptr, &properties) {}

  Bytes workspace() const { return traits_.workspace; }
  const EngineTraits& traits() const { return traits_; }
  // For logs and tests: "engine 47, rank 0", "engine 58, rank 1, 4 slices".
  const std::string& name() const { return name_; }

  // A part of the batch, which takes `images` of x and y from `first` on.
  struct Slice {
    int64_t first = 0;
    int64_t images = 0;
    std::shared_ptr<const Descriptor> plan;
  };
  const std::vector<Slice>& slices() const { return slices_; }

  // A gradient of w in bfloat16 is summed over the slices by the caller, in float32: run()
  // then writes one result for each slice, partial_stride() elements apart, to `w`.
  // Otherwise 1.
  int64_t partials() const { return partials_; }
  int64_t partial_stride() const { return partial_stride_; }

  // Whether run() adds a bias. Otherwise the caller adds the one that the problem has.
  bool adds_bias() const { return adds_bias_; }

  // Enqueues on the handle's stream. REQUIRES: the handle that the plan was made for.
  // The pass decides which of x, w, y is written. `bias`, of x's type, is read if adds_bias().
  // All pointers but the workspace are aligned to at least 16 bytes. Throws DeviceError.
  void run(cudnnHandle_t handle, void* x, void* w, void* y, void* workspace,
           void* bias = nullptr) const;

 private:
  ConvolutionPlan(const Convolution& problem, cudnnHandle_t handle,
                  const Descriptor* properties);
  // Sets slices_, traits_ and name_. Returns how many engines cuDNN suggested; if none of them
  // is acceptable, slices_ is empty.
  int find_engines(const Convolution& problem, cudnnHandle_t handle,
                   const Descriptor* properties);

  std::vector<Slice> slices_;
  EngineTraits traits_;
  std::string name_;
  Bytes x_image_{0}, y_image_{0}, w_step_{0};
  int64_t partials_ = 1, partial_stride_ = 0;
  bool adds_bias_ = false;
};

// The names of the other plans for the problem, "engine 47, rank 3", in cuDNN's heuristic
// order. Without those that take the same engine and workspace as an earlier one. None: the
// batch has to be cut. Makes each plan to learn its workspace, which takes a while. Throws
// DeviceError.
std::vector<std::string> other_plans(const Convolution& problem, cudnnHandle_t handle);
std::vector<std::string> other_plans(const Convolution& problem, const Descriptor& properties);

}  // namespace tidemark::cudnn

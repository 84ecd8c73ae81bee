// A random training program of real operators: random graphs of convolutions, normalisations,
// views, broadcasts, dropout and losses over shared and dropped handles; backward through part
// of them, gradients accumulated over micro-batches, optimizer updates, in-place writes to
// buffers, to views and to intermediate results.
//
// The same seed gives the same calls in every session, with or without data: nothing is drawn
// from values. All that the program reads is hashed into `read`, in order.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "models/nn/parameter_init.h"
#include "ops/elementwise/elementwise.h"
#include "ops/optimizer/optimizer.h"
#include "runtime/tensor/tensor.h"

namespace tidemark::testing {

class RandomGraph {
 public:
  // In the current session. `read` must outlive it.
  RandomGraph(uint32_t seed, std::vector<uint64_t>* read);

  // One training step; to be called within Session::step.
  void step();
  // Reads parameters, optimizer state and buffers.
  void finish();

 private:
  // What belongs to one number of channels; shared by all calls that meet it.
  struct Norm {
    Tensor gamma, beta, mean, var;
  };
  struct Parameter {
    Tensor value;
    Tensor first, second;  // momentum, or Adam's two
    AdamUpdate narrow;     // a bfloat16 parameter that gets the same gradients, with its state
  };

  int64_t pick(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint32_t>(n)); }
  bool once_in(int64_t n) { return pick(n) == 0; }
  template <class T>
  T& any(std::vector<T>& of) {
    return of[static_cast<size_t>(pick(static_cast<int64_t>(of.size())))];
  }
  Tensor trained(Tensor tensor);
  static AdamUpdate narrow_like(const Tensor& tensor, bool master, bool eight_bit);

  void micro_batch();
  void evaluation();
  void update();
  void read(const Tensor& tensor);

  // One call, or a few, on x (N, H, W, C); the result has four dimensions too.
  Tensor grow(const Tensor& x);
  Tensor convolve(const Tensor& x);
  Tensor normalise(const Tensor& x);
  Tensor combine(const Tensor& x);
  Tensor pool(const Tensor& x);
  Tensor multiply(const Tensor& x);
  Tensor look_differently(const Tensor& x);
  Tensor soften(const Tensor& x);
  // The parts of a Llama's layer.
  Tensor llama(const Tensor& x);
  // In bfloat16 and back; weights are cast for it.
  Tensor narrowly(const Tensor& x);
  Tensor loss(const Tensor& x);
  // Something that broadcasts with x.
  Tensor partner(const Tensor& x);
  void write_in_place();

  std::mt19937 random_;
  ParameterInit init_;
  std::vector<uint64_t>* read_;
  std::vector<Parameter> parameters_;
  // By number of channels, of kNarrow and of kWide.
  Tensor conv3_[2][2], conv1_[2][2], grouped_[2], bias_[2], square_[2], norm_shift_[2];
  Norm norm_[2];
  std::vector<Tensor> buffers_;  // no gradient; overwritten in place
  std::vector<Tensor> live_;     // of the graph under construction
  std::vector<Tensor> kept_;     // survive micro-batches and steps, without a graph
  int64_t steps_ = 0;
};

}  // namespace tidemark::testing

// Loads a module's parameters and buffers from files (weight_source.h) and saves them as
// safetensors files, optionally renamed.
//
//   const auto source = open_weights("bert-base-uncased.safetensors");
//   load_into(model, *source, {.unexpected_allowed = true});
//   save_weights("tuned.safetensors", model);
//
// Threads: the session's issuing thread.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "models/checkpoint/safetensors.h"
#include "models/nn/module.h"
#include "runtime/residency/host_pieces.h"

namespace tidemark {

// Maps a tensor of a module to its names in a file. Several names: the file stores the tensor
// in that many equal parts along the first dimension, such as query, key and value. No name:
// the tensor is not in the file and keeps its values.
using WeightNames = std::function<std::vector<std::string>(const std::string& ours)>;

struct LoadOptions {
  WeightNames names{};  // empty: the same names
  // If false, a DataError lists such tensors before anything is written.
  bool missing_allowed = false;     // tensors of the module that the file lacks
  bool unexpected_allowed = false;  // tensors of the file that the module lacks
  // Refuse values that are infinite or not a number, naming tensor and element.
  bool finite = false;
};

struct LoadReport {
  int64_t loaded = 0;                   // tensors of the module
  std::vector<std::string> missing;     // names as in the file
  std::vector<std::string> unexpected;  // in the file's order
};

// Checks all names, types and shapes first, so the module is unchanged after an error. The
// exception is a file that changes or becomes unreadable while it is being loaded: part of it
// may then be loaded. Tensors that share values (tied weights) are loaded once, under the first
// of their names that the file has. A bfloat16 tensor takes any floats, rounded to the nearest.
// Besides the module's own memory, needs device memory for one tensor at a time and a few MiB
// of host memory.
LoadReport load_into(Module& module, WeightSource& source, const LoadOptions& options = {});

// The same for a list of named tensors.
LoadReport load_tensors(std::span<const NamedTensor> tensors, WeightSource& source,
                        const LoadOptions& options = {});

// Saves parameters and buffers; among tensors that share values, only the first. A tensor with
// several names is split. Replaces the file atomically. Throws UsageError on devices without
// data.
void save_weights(const std::string& path, const Module& module,
                  const WeightMetadata& metadata = {}, const WeightNames& names = {});
void save_tensors(const std::string& path, std::span<const NamedTensor> tensors,
                  const WeightMetadata& metadata = {}, const WeightNames& names = {});

// The same for tensors that are made one at a time, when their turn comes.
struct DeferredTensor {
  std::string name;
  DType dtype;
  Shape shape;
  std::function<Tensor()> make;
};
void save_deferred(const std::string& path, std::span<const DeferredTensor> tensors,
                   const WeightMetadata& metadata = {});

// Overwrites the values of a contiguous tensor from `source`, or from host memory.
void assign_values_from(const PieceSource& source, const Tensor& tensor);
void assign_values(const Tensor& tensor, std::span<const std::byte> bytes);
// For dry runs on devices without data: allocates the memory that loading these tensors needs.
void simulate_load(std::span<const NamedTensor> tensors);
// Copies a tensor's values to the host. Throws UsageError on devices without data.
std::vector<std::byte> values_of(const Tensor& tensor);
void values_to(const PieceSink& sink, const Tensor& tensor);

// Omits tensors that share their values with an earlier one.
std::vector<NamedTensor> without_shared(std::span<const NamedTensor> tensors);

}  // namespace tidemark

// A module's parameters and buffers from and to safetensors files, also under other names.
//
//   SafetensorsFile file("bert-base-uncased.safetensors");
//   load_into(model, file, {.unexpected_allowed = true});
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
#include "runtime/residency/residency.h"

namespace tidemark {

// What a tensor of a module is called in a file. Several names: the file has it in that many
// equal parts along its first dimension, such as query, key and value. None: it is not there
// and keeps its values.
using WeightNames = std::function<std::vector<std::string>(const std::string& ours)>;

struct LoadOptions {
  WeightNames names{};  // none: the same names
  // Otherwise a DataError that lists them, before anything is written.
  bool missing_allowed = false;     // tensors of the module that the file lacks
  bool unexpected_allowed = false;  // tensors of the file that the module lacks
};

struct LoadReport {
  int64_t loaded = 0;                   // tensors of the module
  std::vector<std::string> missing;     // names in the file's terms
  std::vector<std::string> unexpected;  // in the order of the file
};

// Checks all names, types and shapes first, so that after an error the module is as it was;
// only a file that changes or cannot be read while it is being loaded leaves part of it.
// Tensors that share their values (tied weights) are loaded once, by the first of their names
// that the file has. Takes device memory for one tensor at a time, beside the module's own, and
// a few MiB of host memory.
LoadReport load_into(Module& module, SafetensorsFile& file, const LoadOptions& options = {});

// The same for tensors by name.
LoadReport load_tensors(std::span<const NamedTensor> tensors, SafetensorsFile& file,
                        const LoadOptions& options = {});

// Parameters and buffers; of those that share their values, the first. A tensor with several
// names is split. The file is replaced atomically. Throws UsageError on devices without data.
void save_weights(const std::string& path, const Module& module,
                  const SafetensorsMetadata& metadata = {}, const WeightNames& names = {});
void save_tensors(const std::string& path, std::span<const NamedTensor> tensors,
                  const SafetensorsMetadata& metadata = {}, const WeightNames& names = {});

// Overwrites the values of a contiguous tensor: with what `source` makes, or from host memory.
void assign_values_from(const PieceSource& source, const Tensor& tensor);
void assign_values(const Tensor& tensor, std::span<const std::byte> bytes);
// For dry runs, on devices without data: takes the memory that loading these tensors takes.
void simulate_load(std::span<const NamedTensor> tensors);
// Copies them out. Throws UsageError on devices without data.
std::vector<std::byte> values_of(const Tensor& tensor);
void values_to(const PieceSink& sink, const Tensor& tensor);

// Without those whose values an earlier one has too.
std::vector<NamedTensor> without_shared(std::span<const NamedTensor> tensors);

}  // namespace tidemark

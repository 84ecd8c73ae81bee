#include "models/checkpoint/torchvision.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "ops/autograd/autograd.h"
#include "ops/elementwise/inplace.h"
#include "ops/view/contiguous.h"
#include "ops/view/view.h"
#include "runtime/core/errors.h"

namespace tidemark {
namespace {

// A tensor of the model and its counterpart in the file. The file has the layout (outer, a, b),
// the model (outer, b, a); if a or b is 1 the layouts are the same.
struct Entry {
  NamedTensor ours;
  std::string name;  // in the file
  Shape shape;       // in the file
  int64_t outer = 1, a = 1, b = 1;
  bool head = false;  // belongs to the last layer

  bool same_layout() const { return a == 1 || b == 1; }
};

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::string with(std::string text, std::string_view part, std::string_view by) {
  const size_t at = text.find(part);
  return at == std::string::npos ? text : text.replace(at, part.size(), by);
}

Entry entry_of(const NamedTensor& ours) {
  const Shape& shape = ours.tensor.shape();
  const size_t rank = shape.rank();
  Entry entry{ours, with(ours.name, ".in_proj.", ".in_proj_"), shape};
  if (rank >= 4) {  // (K, R, S, C)
    entry.outer = shape[0];
    entry.a = shape[rank - 1];
    entry.b = shape.elements() / (entry.outer * entry.a);
    for (size_t i = rank - 1; i > 1; --i) entry.shape[i] = shape[i - 1];
    entry.shape[1] = entry.a;
  } else if (rank == 2 && contains(ours.name, ".self_attention.")) {  // (in, out)
    entry.a = shape[1];
    entry.b = shape[0];
    entry.shape = Shape{entry.a, entry.b};
  }
  return entry;
}

std::vector<Entry> entries_of(const ImageModel& model) {
  std::vector<Entry> entries;
  for (const NamedTensor& ours : model.parameters()) entries.push_back(entry_of(ours));
  const auto is_matrix = [](const Entry& entry) { return entry.shape.rank() == 2; };
  const auto first = std::find_if(entries.begin(), entries.end(), is_matrix);
  if (model.pixels() > 1 && first != entries.end()) {  // (out, pixels, C)
    first->outer = first->shape[0];
    first->b = model.pixels();
    first->a = first->shape[1] / first->b;
  }
  const auto last = std::find_if(entries.rbegin(), entries.rend(), is_matrix);
  if (last != entries.rend()) {
    const std::string layer = last->name.substr(0, last->name.rfind('.') + 1);
    for (Entry& entry : entries) entry.head = entry.name.starts_with(layer);
  }
  for (const NamedTensor& ours : model.buffers()) entries.push_back(entry_of(ours));
  return entries;
}

// Files from before torchvision 0.13 have other names for the layers of a transformer's MLP.
const WeightEntry* find(const WeightSource& file, const std::string& name) {
  if (const WeightEntry* found = file.find(name)) return found;
  if (!contains(name, ".mlp.")) return nullptr;
  return file.find(with(with(name, ".mlp.0.", ".mlp.linear_1."), ".mlp.3.", ".mlp.linear_2."));
}

bool is_passed_over(const std::string& name) {
  return name.ends_with(".num_batches_tracked") || name.starts_with("aux1.") ||
         name.starts_with("aux2.");
}

bool differs_in_classes_alone(const Shape& a, const Shape& b) {
  return a.rank() == b.rank() && a[0] != b[0] &&
         std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

// Removes entries that the file lacks for this network's classes; returns their names.
std::vector<std::string> check(std::vector<Entry>& entries, const WeightSource& file) {
  std::vector<std::string> fresh;
  std::unordered_set<std::string_view> used;
  std::erase_if(entries, [&](Entry& entry) {
    const WeightEntry* there = find(file, entry.name);
    if (there == nullptr) {
      if (!entry.head) {
        throw DataError(file.path(),
                        "'" + entry.name + "', which this network needs, is missing");
      }
      fresh.push_back(entry.name);
      return true;
    }
    used.insert(there->name);
    if (there->shape == entry.shape && there->dtype == DType::kFloat32) {
      entry.name = there->name;
      return false;
    }
    if (entry.head && differs_in_classes_alone(there->shape, entry.shape)) {
      fresh.push_back(entry.name);
      return true;
    }
    file.fail(*there, "is " + there->type + ' ' + there->shape.to_string() +
                          "; this network takes F32 " + entry.shape.to_string());
  });
  for (const WeightEntry& there : file.entries()) {
    if (!used.contains(there.name) && !is_passed_over(there.name)) {
      file.fail(there, "is not part of this network");
    }
  }
  return fresh;
}

// Converts (outer, x, y) to (outer, y, x).
Tensor swapped(const Tensor& tensor, int64_t outer, int64_t x, int64_t y) {
  return contiguous(transpose(reshape(tensor, {outer, x, y}), 1, 2));
}

void rearrange(const std::vector<Entry>& entries) {
  const NoGrad no_grad;
  for (const Entry& entry : entries) {
    if (entry.same_layout()) continue;
    const Tensor& ours = entry.ours.tensor;
    copy_(ours, reshape(swapped(ours, entry.outer, entry.a, entry.b), ours.shape()));
  }
}

}  // namespace

std::vector<std::string> check_torchvision(const ImageModel& model, const WeightSource& file) {
  std::vector<Entry> entries = entries_of(model);
  return check(entries, file);
}

LoadReport load_torchvision(const ImageModel& model, WeightSource& file) {
  std::vector<Entry> entries = entries_of(model);
  std::vector<std::string> fresh = check(entries, file);
  std::vector<NamedTensor> as_there;
  {
    const NoGrad no_grad;
    for (const Entry& entry : entries) {
      as_there.push_back({entry.name, reshape(entry.ours.tensor, entry.shape)});
    }
  }
  LoadReport report = load_tensors(as_there, file, {.unexpected_allowed = true});
  rearrange(entries);
  report.missing = std::move(fresh);
  return report;
}

void rearrange_from_torchvision(const ImageModel& model) { rearrange(entries_of(model)); }

std::vector<NamedTensor> torchvision_tensors(const ImageModel& model) {
  const NoGrad no_grad;
  std::vector<NamedTensor> tensors;
  for (const Entry& entry : entries_of(model)) {
    const Tensor& ours = entry.ours.tensor;
    tensors.push_back(
        {entry.name,
         reshape(entry.same_layout() ? ours : swapped(ours, entry.outer, entry.b, entry.a),
                 entry.shape)});
  }
  return tensors;
}

void save_torchvision(const std::string& path, const ImageModel& model) {
  save_tensors(path, torchvision_tensors(model), {{"format", "pt"}});
}

}  // namespace tidemark

#include "models/checkpoint/weights.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "ops/autograd/autograd.h"
#include "ops/elementwise/inplace.h"
#include "ops/view/view.h"
#include "runtime/core/bfloat16.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

constexpr size_t kNamesInMessage = 8;
constexpr size_t kFloatsAtOnce = size_t{16} << 10;

std::vector<std::string> names_in_file(const std::string& ours, const WeightNames& names) {
  return names ? names(ours) : std::vector<std::string>{ours};
}

bool same_values(const Tensor& a, const Tensor& b) {
  return a.storage().get() == b.storage().get() && a.meta().offset == b.meta().offset &&
         a.shape() == b.shape() && a.dtype() == b.dtype();
}

std::vector<NamedTensor> all_of(const Module& module) {
  std::vector<NamedTensor> all = module.parameters();
  for (NamedTensor& buffer : module.buffers()) all.push_back(std::move(buffer));
  return all;
}

// The shape of one of `parts` equal parts.
Shape part_shape(const NamedTensor& tensor, size_t parts) {
  Shape shape = tensor.tensor.shape();
  if (parts == 1) return shape;
  const auto count = static_cast<int64_t>(parts);
  if (shape.rank() == 0 || shape[0] % count != 0) {
    throw UsageError("[weights] '" + tensor.name + "' " + shape.to_string() +
                     " cannot be cut into " + std::to_string(parts) + " equal parts");
  }
  shape[0] /= count;
  return shape;
}

std::string list(const std::vector<std::string>& names) {
  std::string text = std::to_string(names.size()) + " (";
  for (size_t i = 0; i < names.size() && i < kNamesInMessage; ++i) {
    text += (i > 0 ? ", " : "") + names[i];
  }
  return text + (names.size() > kNamesInMessage ? ", ...)" : ")");
}

struct Match {
  Tensor tensor;
  std::vector<const WeightEntry*> parts;
};

// Reads float32 elements from element `first` on.
void read_floats(WeightSource& source, const WeightEntry& entry, int64_t first,
                 std::span<float> out, bool finite) {
  source.read(entry, size_of(DType::kFloat32) * first, std::as_writable_bytes(out));
  if (!finite) return;
  const auto bad =
      std::find_if(out.begin(), out.end(), [](float value) { return !std::isfinite(value); });
  if (bad == out.end()) return;
  source.fail(entry, "has a value that is " +
                         std::string(std::isnan(*bad) ? "NaN" : "infinite") + ", element " +
                         std::to_string(first + (bad - out.begin())));
}

// Bytes [offset, offset + out.size()) of what a tensor of type `dtype` takes from `entry`.
void read_as(DType dtype, WeightSource& source, const WeightEntry& entry, Bytes offset,
             std::span<std::byte> out, bool finite) {
  if (entry.dtype == dtype && dtype == DType::kFloat32) {
    const std::span floats(reinterpret_cast<float*>(out.data()), out.size() / sizeof(float));
    read_floats(source, entry, offset.count() / int64_t{sizeof(float)}, floats, finite);
    return;
  }
  if (entry.dtype == dtype) {
    source.read(entry, offset, out);
    return;
  }
  std::array<float, kFloatsAtOnce> floats;
  int64_t at = offset.count() / 2;
  for (size_t left = out.size() / sizeof(BFloat16), done = 0; left > 0;) {
    const auto some = std::span(floats).first(std::min(left, floats.size()));
    read_floats(source, entry, at, some, finite);
    for (const float value : some) {
      const BFloat16 rounded(value);
      std::memcpy(out.data() + done, &rounded, sizeof(rounded));
      done += sizeof(rounded);
    }
    left -= some.size();
    at += static_cast<int64_t>(some.size());
  }
}

// Bytes [offset, offset + out.size()) of the concatenation of the parts.
void read_parts(WeightSource& source, const Match& match, Bytes offset,
                std::span<std::byte> out, bool finite) {
  const DType dtype = match.tensor.dtype();
  for (const WeightEntry* part : match.parts) {
    const Bytes bytes = size_of(dtype) * part->shape.elements();
    if (offset < bytes) {
      const auto left = static_cast<size_t>((bytes - offset).count());
      const std::span<std::byte> of_part = out.first(std::min(left, out.size()));
      read_as(dtype, source, *part, offset, of_part, finite);
      out = out.subspan(of_part.size());
      offset = bytes;
    }
    if (out.empty()) return;
    offset -= bytes;
  }
}

// Values are uploaded so many bytes at a time, if a row is no larger: the tensor and these have
// to be resident together.
constexpr Bytes kMostAssigned{64 << 20};

bool fits(const WeightEntry& entry, DType dtype) {
  return entry.dtype == dtype || (entry.dtype == DType::kFloat32 && dtype == DType::kBFloat16);
}

void check_entry(const WeightSource& source, const WeightEntry& entry, const NamedTensor& ours,
                 const Shape& shape) {
  if (!fits(entry, ours.tensor.dtype()) || !(entry.shape == shape)) {
    source.fail(entry, "is " + entry.type + ' ' + entry.shape.to_string() + ", '" + ours.name +
                           "' takes " + std::string(to_string(ours.tensor.dtype())) + ' ' +
                           shape.to_string());
  }
}

}  // namespace

std::vector<NamedTensor> without_shared(std::span<const NamedTensor> tensors) {
  std::vector<NamedTensor> kept;
  for (const NamedTensor& named : tensors) {
    bool shared = false;
    for (const NamedTensor& other : kept) {
      shared = shared || same_values(named.tensor, other.tensor);
    }
    if (!shared) kept.push_back(named);
  }
  return kept;
}

void assign_values_from(const PieceSource& source, const Tensor& tensor) {
  const NoGrad no_grad;
  Session& session = Session::current();
  session.check_own(tensor, "load");
  const auto assign = [&](const PieceSource& values, const Tensor& to) {
    copy_(to, session.upload_from(values, TensorMeta::contiguous(to.dtype(), to.shape()),
                                  Category::kData, "load"));
  };
  if (tensor.meta().bytes() <= kMostAssigned) return assign(source, tensor);
  const int64_t rows = tensor.shape()[0];
  const Bytes row = size_of(tensor.dtype()) * (tensor.shape().elements() / rows);
  const int64_t most = std::max<int64_t>(1, kMostAssigned.count() / row.count());
  for (int64_t first = 0; first < rows; first += most) {
    const auto values = [&](Bytes offset, std::span<std::byte> piece) {
      source(row * first + offset, piece);
    };
    assign(values, narrow(tensor, 0, first, std::min(most, rows - first)));
  }
}

void assign_values(const Tensor& tensor, std::span<const std::byte> bytes) {
  TIDEMARK_CHECK(static_cast<int64_t>(bytes.size()) == tensor.meta().bytes().count(),
                 "the values have the tensor's size");
  const auto source = [&](Bytes offset, std::span<std::byte> piece) {
    std::copy_n(bytes.begin() + offset.count(), piece.size(), piece.begin());
  };
  assign_values_from(source, tensor);
}

void simulate_load(std::span<const NamedTensor> tensors) {
  for (const NamedTensor& named : without_shared(tensors)) {
    assign_values_from([](Bytes, std::span<std::byte>) {}, named.tensor);
  }
}

void values_to(const PieceSink& sink, const Tensor& tensor) {
  if (!Session::current().download_to(sink, tensor)) {
    throw UsageError("[weights] a device without data has no values to save");
  }
}

std::vector<std::byte> values_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.meta().bytes().count()));
  values_to(copy_into(bytes.data()), tensor);
  return bytes;
}

LoadReport load_tensors(std::span<const NamedTensor> tensors, WeightSource& source,
                        const LoadOptions& options) {
  LoadReport report;
  std::vector<Match> matches;
  std::vector<std::pair<Tensor, std::string>> absent;
  std::unordered_set<std::string_view> used;
  for (const NamedTensor& ours : tensors) {
    const std::vector<std::string> names = names_in_file(ours.name, options.names);
    if (names.empty()) continue;
    Match match{ours.tensor, {}};
    const Shape shape = part_shape(ours, names.size());
    for (const std::string& name : names) {
      const WeightEntry* entry = source.find(name);
      if (entry == nullptr) {
        absent.emplace_back(ours.tensor, name);
        continue;
      }
      check_entry(source, *entry, ours, shape);
      used.insert(entry->name);
      match.parts.push_back(entry);
    }
    if (match.parts.size() != names.size()) continue;
    bool shared = false;
    for (const Match& other : matches) {
      shared = shared || same_values(other.tensor, match.tensor);
    }
    if (!shared) matches.push_back(std::move(match));
  }
  for (auto& [tensor, name] : absent) {
    bool shared = false;
    for (const Match& match : matches) shared = shared || same_values(match.tensor, tensor);
    if (!shared) report.missing.push_back(std::move(name));
  }
  for (const WeightEntry& entry : source.entries()) {
    if (!used.contains(entry.name)) report.unexpected.push_back(entry.name);
  }
  std::string complaint;
  if (!report.missing.empty() && !options.missing_allowed) {
    complaint = "missing tensors: " + list(report.missing);
  }
  if (!report.unexpected.empty() && !options.unexpected_allowed) {
    complaint += (complaint.empty() ? "" : "; ") + std::string("unexpected tensors: ") +
                 list(report.unexpected);
  }
  if (!complaint.empty()) {
    throw DataError(source.path(), complaint);
  }
  for (const Match& match : matches) {
    const auto pieces = [&](Bytes offset, std::span<std::byte> piece) {
      read_parts(source, match, offset, piece, options.finite);
    };
    assign_values_from(pieces, match.tensor);
    ++report.loaded;
  }
  return report;
}

LoadReport load_into(Module& module, WeightSource& source, const LoadOptions& options) {
  return load_tensors(all_of(module), source, options);
}

void save_tensors(const std::string& path, std::span<const NamedTensor> tensors,
                  const WeightMetadata& metadata, const WeightNames& names) {
  std::vector<SafetensorsSpec> specs;
  std::vector<Tensor> saved;
  for (const NamedTensor& ours : without_shared(tensors)) {
    const std::vector<std::string> parts = names_in_file(ours.name, names);
    if (parts.empty()) continue;
    const Shape shape = part_shape(ours, parts.size());
    for (const std::string& name : parts) specs.push_back({name, ours.tensor.dtype(), shape});
    saved.push_back(ours.tensor);
  }
  SafetensorsWriter writer(path, specs, metadata);
  const auto write = [&](std::span<const std::byte> piece) { writer.write(piece); };
  for (const Tensor& tensor : saved) values_to(write, tensor);
  writer.commit();
}

void save_deferred(const std::string& path, std::span<const DeferredTensor> tensors,
                   const WeightMetadata& metadata) {
  std::vector<SafetensorsSpec> specs;
  specs.reserve(tensors.size());
  for (const DeferredTensor& each : tensors) {
    specs.push_back({each.name, each.dtype, each.shape});
  }
  SafetensorsWriter writer(path, specs, metadata);
  const auto write = [&](std::span<const std::byte> piece) { writer.write(piece); };
  for (const DeferredTensor& each : tensors) values_to(write, each.make());
  writer.commit();
}

void save_weights(const std::string& path, const Module& module, const WeightMetadata& metadata,
                  const WeightNames& names) {
  save_tensors(path, all_of(module), metadata, names);
}

}  // namespace tidemark

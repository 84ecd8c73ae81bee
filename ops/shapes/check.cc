#include "ops/shapes/check.h"

#include <bit>

namespace tidemark {

void throw_misfit(const char* op, const OpQuery& query, const std::string& what) {
  std::string message = std::string("[") + op + "] " + what + "; inputs";
  const char* separator = " ";
  for (const TensorMeta& input : query.inputs) {
    message += separator + input.shape.to_string();
    separator = ", ";
  }
  throw UsageError(message);
}

void check_dtype(const char* op, const OpQuery& query, size_t i, DType dtype) {
  const DType actual = query.inputs[i].dtype;
  if (actual == dtype) return;
  throw_misfit(op, query,
               "input " + std::to_string(i) + " must be " + std::string(to_string(dtype)) +
                   ", not " + std::string(to_string(actual)));
}

DType check_float(const char* op, const OpQuery& query, size_t i) {
  const DType dtype = query.inputs[i].dtype;
  if (dtype == DType::kFloat32 || dtype == DType::kBFloat16) return dtype;
  throw_misfit(op, query,
               "input " + std::to_string(i) + " must be float32 or bfloat16, not " +
                   std::string(to_string(dtype)));
}

DType check_floats(const char* op, const OpQuery& query, std::initializer_list<size_t> ranks,
                   uint32_t activations) {
  if (query.inputs.size() != ranks.size()) {
    throw_misfit(op, query, "takes " + std::to_string(ranks.size()) + " inputs");
  }
  DType dtype = DType::kFloat32;
  if (activations) {
    dtype = check_float(op, query, static_cast<size_t>(std::countr_zero(activations)));
  }
  const size_t* rank = ranks.begin();
  for (size_t i = 0; i < ranks.size(); ++i, ++rank) {
    const TensorMeta& input = query.inputs[i];
    const std::string which = "input " + std::to_string(i);
    if (*rank != kAnyRank && input.shape.rank() != *rank) {
      throw_misfit(op, query, which + " must have " + std::to_string(*rank) + " dimensions");
    }
    check_dtype(op, query, i, activations >> i & 1 ? dtype : DType::kFloat32);
    if (!input.is_contiguous()) throw_misfit(op, query, which + " must be contiguous");
    if (input.shape.elements() == 0) throw_misfit(op, query, which + " is empty");
  }
  return dtype;
}

void check_float32(const char* op, const OpQuery& query, std::initializer_list<size_t> ranks) {
  check_floats(op, query, ranks, 0);
}

Bytes bytes_moved(const OpQuery& query) {
  Bytes sum{0};
  for (const TensorMeta& input : query.inputs) sum += input.bytes();
  for (const TensorMeta& output : query.outputs) sum += output.bytes();
  return sum;
}

int64_t window_positions(const char* op, const OpQuery& query, int64_t extent, int64_t window,
                         int64_t stride, int64_t padding, int64_t dilation) {
  if (window < 1 || stride < 1 || dilation < 1 || padding < 0) {
    throw_misfit(op, query,
                 "window " + std::to_string(window) + ", stride " + std::to_string(stride) +
                     ", dilation " + std::to_string(dilation) + " and padding " +
                     std::to_string(padding) + " must be positive (padding: not negative)");
  }
  const int64_t span = dilation * (window - 1) + 1;
  if (span > extent + 2 * padding) {
    throw_misfit(op, query,
                 "a window of " + std::to_string(span) + " does not fit an input of " +
                     std::to_string(extent) + " with padding " + std::to_string(padding));
  }
  return (extent + 2 * padding - span) / stride + 1;
}

}  // namespace tidemark

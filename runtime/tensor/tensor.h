// A view of a storage: type, shape, strides and offset within the storage. Copying a tensor
// copies the handle. Values are in row-major order unless the strides say otherwise.
//
// Threads: the session's issuing thread.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/core/dtype.h"
#include "runtime/core/shape.h"
#include "runtime/tensor/storage.h"

namespace tidemark {

struct TensorMeta {
  DType dtype = DType::kFloat32;
  Shape shape;
  Shape strides;       // in elements; 0 for a broadcast dimension
  int64_t offset = 0;  // in elements from the storage's start

  static TensorMeta contiguous(DType dtype, const Shape& shape) {
    return {dtype, shape, contiguous_strides(shape), 0};
  }
  bool is_contiguous() const;  // row-major without gaps, whatever the offset
  // Size of the elements, without gaps.
  Bytes bytes() const { return size_of(dtype) * shape.elements(); }
};

class Tensor {
 public:
  Tensor() = default;
  Tensor(StorageUse storage, TensorMeta meta) : storage_(std::move(storage)), meta_(meta) {}

  bool defined() const { return static_cast<bool>(storage_); }
  explicit operator bool() const { return defined(); }

  const TensorMeta& meta() const { return meta_; }
  DType dtype() const { return meta_.dtype; }
  const Shape& shape() const { return meta_.shape; }
  int64_t extent(size_t dimension) const { return meta_.shape[dimension]; }
  int64_t elements() const { return meta_.shape.elements(); }
  const StorageUse& storage() const { return storage_; }

  // Another view of the same storage, without autograd state; for differentiable views see
  // ops/view.
  Tensor view(const TensorMeta& meta) const { return Tensor(storage_, meta); }

  // The autograd state; opaque here, see ops/autograd.
  const IntrusivePtr<RefCounted>& autograd() const { return autograd_; }
  void set_autograd(IntrusivePtr<RefCounted> state) { autograd_ = std::move(state); }

 private:
  StorageUse storage_;
  TensorMeta meta_;
  IntrusivePtr<RefCounted> autograd_;
};

}  // namespace tidemark

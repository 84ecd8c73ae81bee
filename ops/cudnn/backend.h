// A wrapper of cuDNN's graph interface (its backend API), as far as Tidemark's kernels need it:
// descriptors that free themselves, and typed attributes.
//
// Everything except running a plan works without a GPU, given a device's properties as JSON.
// Tests and measurements use this to look at the choice of algorithms on any machine.
//
// Threads: any; only one thread at a time may change a descriptor.
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

static_assert(CUDNN_VERSION >= 90800, "descriptors of device properties: cuDNN 9.8 or later");

namespace tidemark::cudnn {

// Throws DeviceError "cudnnX: what cuDNN says" if the status is not success.
void check(cudnnStatus_t status, const char* call);

template <class T>
struct AttributeType;
#define TIDEMARK_CUDNN_ATTRIBUTE(type, tag)                    \
  template <>                                                  \
  struct AttributeType<type> {                                 \
    static constexpr cudnnBackendAttributeType_t kValue = tag; \
  }
TIDEMARK_CUDNN_ATTRIBUTE(bool, CUDNN_TYPE_BOOLEAN);
TIDEMARK_CUDNN_ATTRIBUTE(char, CUDNN_TYPE_CHAR);
TIDEMARK_CUDNN_ATTRIBUTE(int32_t, CUDNN_TYPE_INT32);
TIDEMARK_CUDNN_ATTRIBUTE(int64_t, CUDNN_TYPE_INT64);
TIDEMARK_CUDNN_ATTRIBUTE(float, CUDNN_TYPE_FLOAT);
TIDEMARK_CUDNN_ATTRIBUTE(cudnnDataType_t, CUDNN_TYPE_DATA_TYPE);
TIDEMARK_CUDNN_ATTRIBUTE(cudnnConvolutionMode_t, CUDNN_TYPE_CONVOLUTION_MODE);
TIDEMARK_CUDNN_ATTRIBUTE(cudnnBackendHeurMode_t, CUDNN_TYPE_HEUR_MODE);
TIDEMARK_CUDNN_ATTRIBUTE(cudnnBackendNumericalNote_t, CUDNN_TYPE_NUMERICAL_NOTE);
TIDEMARK_CUDNN_ATTRIBUTE(cudnnBackendBehaviorNote_t, CUDNN_TYPE_BEHAVIOR_NOTE);
TIDEMARK_CUDNN_ATTRIBUTE(cudnnPointwiseMode_t, CUDNN_TYPE_POINTWISE_MODE);
#undef TIDEMARK_CUDNN_ATTRIBUTE

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor();

  template <class T>
  void set(cudnnBackendAttributeName_t name, std::span<const T> values) {
    set(name, AttributeType<T>::kValue, static_cast<int64_t>(values.size()), values.data());
  }
  template <class T>
  void set(cudnnBackendAttributeName_t name, const T& value) {
    set(name, std::span<const T>(&value, 1));
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
  }
  void set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);
  void set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
    set(name, CUDNN_TYPE_HANDLE, 1, &value);
  }
  void set_pointers(cudnnBackendAttributeName_t name, std::span<void* const> pointers) {
    set(name, CUDNN_TYPE_VOID_PTR, static_cast<int64_t>(pointers.size()), pointers.data());
  }
  void finalize();
  // False if cuDNN does not support this; throws DeviceError for any other failure.
  bool finalize_if_supported();

  // The value of an attribute that has one value.
  template <class T>
  T get(cudnnBackendAttributeName_t name) const {
    T value{};
    get(name, AttributeType<T>::kValue, 1, &value);
    return value;
  }
  // The values of an attribute, at most `most`.
  template <class T>
  std::vector<T> get_all(cudnnBackendAttributeName_t name, int64_t most) const {
    std::vector<T> values(static_cast<size_t>(most));
    values.resize(
        static_cast<size_t>(get(name, AttributeType<T>::kValue, most, values.data())));
    return values;
  }
  // An attribute that is a descriptor, which cuDNN fills in.
  Descriptor get_part(cudnnBackendAttributeName_t name,
                      cudnnBackendDescriptorType_t type) const;

  cudnnBackendDescriptor_t raw() const { return descriptor_; }

 private:
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
              void* values) const;

  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

// Properties from the JSON that cuDNN wrote on a machine with that GPU. Plans made from them
// can be looked at but not executed. NVIDIA documents this from cuDNN 9.11 on.
Descriptor device_properties(const std::string& json);

}  // namespace tidemark::cudnn

#include "ops/cudnn/backend.h"

#include "runtime/core/errors.h"

namespace tidemark::cudnn {

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::string detail(2048, '\0');
  cudnnGetLastErrorString(detail.data(), detail.size());
  detail.resize(detail.find('\0'));
  while (!detail.empty() && detail.back() == '\n') detail.pop_back();
  throw DeviceError(std::string(call) + ": " + cudnnGetErrorString(status) +
                    (detail.empty() ? "" : "; " + detail));
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  check(cudnnBackendCreateDescriptor(type, &descriptor_), "cudnnBackendCreateDescriptor");
}

Descriptor::~Descriptor() {
  if (descriptor_) cudnnBackendDestroyDescriptor(descriptor_);
}

void Descriptor::finalize() {
  check(cudnnBackendFinalize(descriptor_), "cudnnBackendFinalize");
}

bool Descriptor::finalize_if_supported() {
  const cudnnStatus_t status = cudnnBackendFinalize(descriptor_);
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return false;
  check(status, "cudnnBackendFinalize");
  return true;
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     int64_t count, const void* values) {
  check(cudnnBackendSetAttribute(descriptor_, name, type, count, values),
        "cudnnBackendSetAttribute");
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& value : values) raw.push_back(value.descriptor_);
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, static_cast<int64_t>(raw.size()), raw.data());
}

int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        int64_t most, void* values) const {
  int64_t count = 0;
  check(cudnnBackendGetAttribute(descriptor_, name, type, most, &count, values),
        "cudnnBackendGetAttribute");
  return count;
}

Descriptor Descriptor::get_part(cudnnBackendAttributeName_t name,
                                cudnnBackendDescriptorType_t type) const {
  Descriptor part(type);
  get(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part.descriptor_);
  return part;
}

Descriptor device_properties(const std::string& json) {
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION,
                 std::span<const char>(json.c_str(), json.size() + 1));
  properties.finalize();
  return properties;
}

}  // namespace tidemark::cudnn

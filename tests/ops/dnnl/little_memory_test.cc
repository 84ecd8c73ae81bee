// oneDNN itself ends the process where an allocation fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "ops/dnnl/primitive.h"
#include "runtime/core/process_limits.h"
#include "runtime/device/pages.h"

namespace tidemark {
namespace {

using namespace literals;
using ::testing::HasSubstr;

class AddressSpace {
 public:
  explicit AddressSpace(Bytes more) {
    getrlimit(RLIMIT_AS, &before_);
    const Bytes taken = *read_kib("/proc/self/status", "VmSize:");
    const rlimit limit{static_cast<rlim_t>((taken + more).count()), before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~AddressSpace() { setrlimit(RLIMIT_AS, &before_); }
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

 private:
  rlimit before_{};
};

TEST(LittleMemory, IsAnErrorBeforeOneDnnIsAsked) {
  onednn::attributes();
  std::string error;
  {
    const AddressSpace limited(1_MiB);
    try {
      onednn::attributes();
    } catch (const HostMemoryError& caught) {
      error = caught.what();
    }
  }
  EXPECT_THAT(error, HasSubstr("4.0 MiB (4194304 bytes) for a kernel of oneDNN"));
  EXPECT_THAT(error, HasSubstr("ulimit -v"));
  const AddressSpace enough(64_MiB);
  onednn::attributes();
}

}  // namespace
}  // namespace tidemark

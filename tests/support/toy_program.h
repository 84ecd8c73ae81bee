// Programs of toy operators that test the runtime without real ones: arithmetic on uint32_t
// mixes every input element into every output, so that a wrong byte anywhere shows in the
// result.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/residency/residency.h"
#include "runtime/session/session.h"

namespace tidemark::testing {

// out_j[i] mixes input[i mod n] of each input, `salt` and j. The workspace is first filled and
// read back, like scratch. Written inputs are overwritten with the mix. All inputs are read
// before anything is written, so the first output may take the space of any that is as large.
//
// Its variant takes the place of an input that a toy call made from others: it reads those, and
// computes the input itself, in twice the time.
class ToyCall final : public Recipe {
 public:
  explicit ToyCall(uint32_t salt) : salt_(salt) {}
  const char* name() const override { return "toy"; }
  Event launch(Device& device, const Addresses& addresses, uint64_t tag) override;
  std::vector<IntrusivePtr<Recipe>> variants() const override;

  // By which variants get a price; null: that of the call itself.
  CostModel* costs = nullptr;

 private:
  friend class ToyVariant;
  uint32_t salt_;
};

// The signature of a call with so many words of outputs, and of its variants.
inline constexpr uint64_t toy_signature(uint64_t words) { return words + 1; }
inline constexpr uint64_t toy_variant_signature(uint64_t words) {
  return (uint64_t{1} << 32) + words;
}

struct ToyOutput {
  int64_t words = 128;
};

// A storage user: what a tensor handle is to the runtime.
using Handle = StorageUse;

Handle toy_upload(Session& session, int64_t words, uint32_t salt,
                  Category category = Category::kData);
std::vector<Handle> toy_call(Session& session, const std::vector<Handle>& inputs,
                             const std::vector<ToyOutput>& outputs, uint32_t salt,
                             int64_t workspace_words = 0);
// Writes inputs[0] in place and reads the others.
void toy_update(Session& session, const std::vector<Handle>& inputs, uint32_t salt);
// FNV-1a of its bytes; 0 on devices without data.
uint64_t toy_hash(Session& session, const Handle& handle);

}  // namespace tidemark::testing

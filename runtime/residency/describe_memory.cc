#include "runtime/residency/describe_memory.h"

#include <algorithm>
#include <vector>

namespace tidemark {
namespace {

// "from layer3.2.conv1: conv2d", "layer3.2.conv1.weight.grad from conv2d_grad_weight".
std::string name_and_origin(const Storage& storage) {
  const std::string name = storage.name, origin = storage.origin();
  if (name == origin || name.find(": " + origin) != std::string::npos) return "from " + name;
  return origin == kOriginUpload ? name : name + " from " + origin;
}

}  // namespace

std::string describe_memory(const ResidencyContext& context, const Transfers& transfers,
                            Bytes asked) {
  constexpr size_t kLargest = 5;
  std::vector<Storage*> resident;
  context.storages.for_each([&](Storage& s) {
    if (s.resident()) resident.push_back(&s);
  });
  std::sort(resident.begin(), resident.end(), [](const Storage* a, const Storage* b) {
    return a->size() != b->size() ? a->size() > b->size() : a->id() < b->id();
  });
  const OffsetAllocator& offsets = context.arena.offsets();
  std::string text = "  in use: " + format_bytes(offsets.used()) + " of " +
                     format_bytes(offsets.capacity()) + "; largest hole " +
                     format_unlike(offsets.largest_hole(), asked) + " of " +
                     format_bytes(offsets.unused()) + " unused, in " +
                     std::to_string(offsets.holes().size()) + " pieces";
  for (size_t c = 0; c < kCategoryCount; ++c) {
    const auto category = static_cast<Category>(c);
    if (context.arena.live()[category] == Bytes(0)) continue;
    text += "\n  " + std::string(to_string(category)) + ": " +
            format_bytes(context.arena.live()[category]);
  }
  text += resident.empty() ? "\n  no tensor is resident" : "\n  largest tensors:";
  for (size_t i = 0; i < std::min(kLargest, resident.size()); ++i) {
    Storage& s = *resident[i];
    const char* why = s.managed.pins > 0         ? "needed by the operator"
                      : s.managed.claims > 0     ? "needed by a recomputation"
                      : !context.options.managed ? "memory is not managed"
                      : transfers.can_evict(s)   ? "can be evicted"
                      : context.may_offload(s)   ? "can be offloaded if a tier has space"
                      : context.tiers.empty()    ? "cannot be recomputed, and there is no tier"
                                                 : "cannot be released";
    text += "\n    " + format_bytes(s.size()) + " " + name_and_origin(s) + " (" + why + ")";
  }
  for (const Tier* tier : context.tiers) {
    text += "\n  " + tier->name() + " tier: " + format_bytes(tier->used()) + " of " +
            format_bytes(tier->limit()) + " used";
  }
  return text;
}

}  // namespace tidemark

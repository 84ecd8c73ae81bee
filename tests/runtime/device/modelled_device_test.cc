#include <array>

#include "runtime/device/pages.h"
#include "tests/runtime/device/device_failure_contract.h"

namespace tidemark {
namespace {

struct Modelled {
  static std::unique_ptr<Device> make() {
    return make_modelled_device(make_cpu_device({.threads = 1}), load_profile("host"));
  }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Modelled, DeviceContract, Modelled);
INSTANTIATE_TYPED_TEST_SUITE_P(Modelled, DeviceFailureContract, Modelled);

TEST(ModelledDevice, KeepsTheSimulatorsTime) {
  DeviceProfile profile = load_profile("host");
  profile.pin_bandwidth = 1e9;
  const auto real = make_modelled_device(make_cpu_device({.threads = 1}), profile);
  const auto simulated = make_sim_device(profile);
  const auto memory = real->map(MemoryKind::kDevice, Bytes(1 << 16));
  const Bytes chunks = kPinChunk * 8;
  const auto real_host = real->map(MemoryKind::kHost, chunks);
  const auto simulated_host = simulated->map(MemoryKind::kHost, chunks);
  const auto real_adopted = real->adopt(map_pages(Bytes(1)), chunks);
  const auto simulated_adopted = simulated->adopt(nullptr, chunks);
  std::mt19937 random(7);
  std::array<Event, 3> last{};
  for (int i = 0; i < 300; ++i) {
    const StreamId stream = kAllStreams[random() % 3];
    const Event before = last[random() % 3];
    const auto choice = random() % 7;
    const Nanos cost(static_cast<int64_t>(random() % 100'000));
    const Bytes bytes(static_cast<int64_t>(random() % (1 << 14)));
    const Bytes begin(static_cast<int64_t>(random()) % (chunks - bytes).count());
    Event event;
    for (Device* device : {real.get(), simulated.get()}) {
      // Each stream writes to its own part; all read the last part.
      std::byte* const data = device == real.get() ? memory->data() : nullptr;
      std::byte* const at = data ? data + (static_cast<int64_t>(stream) << 14) : nullptr;
      if (before.ticket > 0) device->wait(stream, before);
      if (choice == 0) event = device->enqueue(stream, work_that([] {}, 0, cost));
      if (choice == 1) event = device->enqueue_host(stream, work_that([] {}, 0, cost));
      if (choice == 2) {
        event = device->copy(stream, {at, data ? data + (3 << 14) : nullptr, bytes, 0});
      }
      if (choice == 3) event = device->fill(stream, at, bytes, std::byte{1});
      if (choice == 4 && before.ticket > 0) device->synchronize(before);
      const auto& host = device == real.get() ? real_host : simulated_host;
      const auto& adopted = device == real.get() ? real_adopted : simulated_adopted;
      if (choice == 5) host->prepare(begin, bytes);
      if (choice == 6) adopted->prepare(begin, bytes);
    }
    if (choice < 4) last[static_cast<size_t>(stream)] = event;
    // What the host does once something is done, it does at the same time.
    for (const Event& each : last) {
      if (each.ticket > 0 && real->done(each)) {
        ASSERT_TRUE(simulated->done(each)) << i;
      }
    }
    ASSERT_EQ(real->modelled_now(), simulated->now()) << i;
  }
  real->synchronize_all();
  simulated->synchronize_all();
  EXPECT_EQ(real->modelled_now(), simulated->now());
  EXPECT_EQ(simulated->modelled_now(), simulated->now());
  EXPECT_GT(real->modelled_now(), Nanos(1'000'000));
}

}  // namespace
}  // namespace tidemark

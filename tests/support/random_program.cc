#include "tests/support/random_program.h"
#include "runtime/residency/residency.h"

#include <random>
#include <utility>

namespace tidemark::testing {

std::vector<uint64_t> run_random_program(Session& session, uint32_t seed, int steps, int calls,
                                         bool alike, const BeforeCall& before,
                                         const Forgiven& forgiven) {
  std::vector<uint64_t> hashes;
  std::mt19937 random(seed);
  auto pick = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint32_t>(n));
  };
  auto words = [&] { return int64_t{128} << pick(5); };
  // Draws numbers one after the other: the order of evaluation of a call's arguments is
  // unspecified.
  auto upload = [&](Category category) {
    const uint32_t salt = random();
    return toy_upload(session, words(), salt, category);
  };
  std::vector<Handle> parameters;
  for (int i = 0; i < kRandomProgramParameters; ++i) {
    parameters.push_back(upload(Category::kParameter));
  }
  std::vector<Handle> kept;  // survives steps
  for (int step = 0; step < steps; ++step) {
    if (alike) random.seed(seed);
    const auto one_step = [&] {
      std::vector<Handle> live = parameters;
      live.push_back(upload(Category::kData));
      live.insert(live.end(), kept.begin(), kept.end());
      kept.clear();
      for (int i = 0; i < calls; ++i) {
        if (!before(step, i, live)) return;
        std::vector<Handle> inputs;
        for (int64_t k = 1 + pick(3); k > 0; --k)
          inputs.push_back(live[static_cast<size_t>(pick(static_cast<int64_t>(live.size())))]);
        if (i == calls / 2) session.residency().set_phase(Phase::kBackward);
        const int64_t kind = pick(20);
        if (kind == 0) {
          toy_update(session, inputs, random());
        } else if (kind == 1) {
          hashes.push_back(toy_hash(session, inputs.front()));
        } else {
          std::vector<ToyOutput> outputs;
          for (int64_t k = 1 + pick(3); k > 0; --k) outputs.push_back({words()});
          const int64_t workspace = pick(3) == 0 ? words() : 0;
          auto made = toy_call(session, inputs, outputs, random(), workspace);
          for (Handle& handle : made) {
            if (pick(4) != 0) live.push_back(std::move(handle));
          }
        }
        // Handles are dropped in any order, data and intermediates among them.
        while (live.size() > 14) {
          live.erase(live.begin() + kRandomProgramParameters +
                     pick(static_cast<int64_t>(live.size()) - kRandomProgramParameters));
        }
      }
      for (size_t p = 0; p < parameters.size(); ++p) {
        if (!before(step, calls + static_cast<int>(p), live)) return;
        toy_update(session, {parameters[p], live.back()}, random());
      }
      if (pick(2) == 0) kept.push_back(live.back());
    };
    try {
      session.step(one_step);
    } catch (const StepStopped&) {
    } catch (const Error& error) {
      if (!forgiven(error)) throw;
    }
    for (const Handle& handle : kept) hashes.push_back(toy_hash(session, handle));
  }
  for (const Handle& parameter : parameters) hashes.push_back(toy_hash(session, parameter));
  return hashes;
}

std::vector<uint64_t> unmanaged_random_program(uint32_t seed, int steps, int calls,
                                               bool alike) {
  SessionOptions options;
  options.threads = 1;
  options.budget = Bytes(64 << 20);
  options.policy = "none";
  Session session(options);
  return run_random_program(session, seed, steps, calls, alike);
}

int64_t releases(Session& session) {
  int64_t released = 0;
  session.events().for_each([&](const EventRecord& event) {
    released += event.kind == EventKind::kEvict || event.kind == EventKind::kOffload;
  });
  return released;
}

}  // namespace tidemark::testing

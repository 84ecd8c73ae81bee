#include "tests/support/random_program.h"

#include <random>
#include <utility>

#include "tests/support/toy_program.h"

namespace tidemark::testing {

std::vector<uint64_t> run_random_program(Session& session, uint32_t seed, int steps, int calls,
                                         bool alike) {
  std::vector<uint64_t> hashes;
  std::mt19937 random(seed);
  auto pick = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint32_t>(n));
  };
  auto words = [&] { return int64_t{128} << pick(5); };
  std::vector<Handle> parameters;
  for (int i = 0; i < 4; ++i) {
    parameters.push_back(toy_upload(session, words(), random(), Category::kParameter));
  }
  std::vector<Handle> kept;  // survives steps
  for (int step = 0; step < steps; ++step) {
    if (alike) random.seed(seed);
    session.step([&] {
      std::vector<Handle> live = parameters;
      live.push_back(toy_upload(session, words(), random()));
      live.insert(live.end(), kept.begin(), kept.end());
      kept.clear();
      for (int i = 0; i < calls; ++i) {
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
          auto made = toy_call(session, inputs, outputs, random(), pick(3) == 0 ? words() : 0);
          for (Handle& handle : made) {
            if (pick(4) != 0) live.push_back(std::move(handle));
          }
        }
        // Handles go in any order, the data and intermediates among them.
        while (live.size() > 14) {
          live.erase(live.begin() + 4 + pick(static_cast<int64_t>(live.size()) - 4));
        }
      }
      for (size_t p = 0; p < parameters.size(); ++p) {
        toy_update(session, {parameters[p], live.back()}, random());
      }
      if (pick(2) == 0) kept.push_back(live.back());
    });
    for (const Handle& handle : kept) hashes.push_back(toy_hash(session, handle));
  }
  for (const Handle& parameter : parameters) hashes.push_back(toy_hash(session, parameter));
  return hashes;
}

}  // namespace tidemark::testing

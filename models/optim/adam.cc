#include "models/optim/check_options.h"
#include "models/optim/optimizer.h"

namespace tidemark {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(std::vector<NamedTensor> parameters, const AdamOptions& options)
      : Optimizer("adam", std::move(parameters), options.lr), options_(options) {
    make_state({"mean", "variance"});
  }

 private:
  void update(std::span<const Update> updates, int64_t count) override {
    AdamOptions now = options_;
    now.lr = learning_rate();
    std::vector<AdamUpdate> all;
    for (const auto& [i, gradient] : updates) {
      all.push_back({parameter(i), gradient, state_of(i, 0), state_of(i, 1)});
    }
    adam_step_(all, now, count);
  }

  const AdamOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adam(std::vector<NamedTensor> parameters,
                                     const AdamOptions& options) {
  return std::make_unique<Adam>(std::move(parameters), checked(options));
}

}  // namespace tidemark

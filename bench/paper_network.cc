#include "bench/paper_network.h"

#include "models/bert.h"
#include "models/image_models.h"
#include "models/optim/clip.h"
#include "models/optim/optimizer.h"
#include "ops/autograd/autograd.h"
#include "ops/loss/loss.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

constexpr int64_t kImage = 224, kClasses = 1000;
constexpr int64_t kMaskedPercent = 15;  // of a sequence's tokens, as in BERT's paper
constexpr double kMaxNorm = 1;          // of BERT's gradients

Tensor input(const Shape& shape, DType dtype, const char* name) {
  return Session::current().upload(TensorMeta::contiguous(dtype, shape), Category::kData,
                                   nullptr, nullptr, name);
}

void wait_for(const Tensor& loss) {
  float value = 0;
  Session::current().download(loss, &value);
}

class Images final : public PaperNetwork {
 public:
  explicit Images(const PaperModel& model)
      : batch_(model.batch),
        model_(make_image_model(model.network, {.image = kImage, .classes = kClasses}, init_)),
        optimizer_(make_adam(model_->parameters(), {.lr = 1e-3})) {}

  void step() override {
    Tensor loss;
    {
      const Tensor images = input({batch_, kImage, kImage, 3}, DType::kFloat32, "images");
      const Tensor labels = input({batch_}, DType::kInt64, "labels");
      loss = cross_entropy(model_->forward(images), labels);
    }
    backward(loss);
    optimizer_->step();
    wait_for(loss);
  }

 private:
  int64_t batch_;
  ParameterInit init_{1};
  std::unique_ptr<ImageModel> model_;
  std::unique_ptr<Optimizer> optimizer_;
};

BertOptions bert(const PaperModel& model) {
  BertOptions options = bert_options(model.network);
  if (model.eager) options.attention = AttentionImplementation::kMaterialised;
  return options;
}

// Head: BertForMaskedLm or BertForSpans.
template <class Head>
class Texts : public PaperNetwork {
 public:
  explicit Texts(const PaperModel& model)
      : batch_(model.batch),
        length_(model.length),
        model_(bert(model), init_),
        parameters_(model_.parameters()),
        optimizer_(
            make_adam(parameters_, {.lr = 1e-4, .weight_decay = 0.01, .decoupled = true})) {}

  void step() override {
    const Tensor loss = forward();
    backward(loss);
    clip_grad_norm_(parameters_, kMaxNorm);
    optimizer_->step();
    wait_for(loss);
  }

 protected:
  virtual Tensor forward() = 0;
  Tensor tokens(const char* name) const {
    return input({batch_, length_}, DType::kInt64, name);
  }

  int64_t batch_, length_;
  ParameterInit init_{1};
  Head model_;
  std::vector<NamedTensor> parameters_;
  std::unique_ptr<Optimizer> optimizer_;
};

class MaskedWords final : public Texts<BertForMaskedLm> {
 public:
  using Texts::Texts;

 private:
  Tensor forward() override {
    const int64_t asked = batch_ * (length_ * kMaskedPercent / 100);
    const Tensor positions = input({asked}, DType::kInt64, "masked positions");
    const Tensor logits = model_.logits({.tokens = tokens("tokens")}, positions);
    return cross_entropy(logits, input({asked}, DType::kInt64, "labels"));
  }
};

class Answers final : public Texts<BertForSpans> {
 public:
  using Texts::Texts;

 private:
  Tensor forward() override {
    const BertForSpans::Logits logits =
        model_.logits({.tokens = tokens("tokens"),
                       .segments = tokens("segments"),
                       .keys = input({batch_}, DType::kInt64, "lengths")});
    return BertForSpans::loss(logits, input({batch_}, DType::kInt64, "starts"),
                              input({batch_}, DType::kInt64, "ends"));
  }
};

}  // namespace

std::unique_ptr<PaperNetwork> make_network(const PaperModel& model) {
  if (!model.is_text()) return std::make_unique<Images>(model);
  if (model.squad) return std::make_unique<Answers>(model);
  return std::make_unique<MaskedWords>(model);
}

Program program_of(const PaperModel& model) {
  return [model] {
    const std::shared_ptr<PaperNetwork> network = make_network(model);
    const std::function<void()> step = [network] { network->step(); };
    return std::vector<std::function<void()>>{step, step};
  };
}

}  // namespace tidemark

#include "examples/planning/capture_model.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "examples/common/bert_job.h"
#include "examples/common/resnet_job.h"
#include "examples/planning/steps.h"
#include "models/image_models.h"
#include "models/named.h"
#include "models/text_models.h"
#include "runtime/core/errors.h"
#include "runtime/session/session.h"

namespace tidemark {
namespace {

template <class Flags>
void fill_in(Flags& flags, const CaptureRequest& request) {
  flags.model = request.model;
  flags.batch = request.batch;
  flags.optimizer = request.optimizer;
  flags.momentum = request.momentum;
  flags.device = "sim:" + request.profile;
  flags.threads = 1;
}

Program program_of(std::shared_ptr<const Job> job) {
  return [job = std::move(job)] { return job->dry_run()(); };
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Makes the network and its steps within a session.
Program open(const CaptureRequest& request) {
  if (request.clip && !is_text_model(request.model)) {
    throw UsageError("--clip is for networks of text; available: " +
                     listed(text_model_names()));
  }
  if (contains(image_model_names(), request.model)) {
    ResNetFlags flags;
    fill_in(flags, request);
    flags.data = "synthetic";
    flags.image_size = request.image_size > 0 ? request.image_size : 224;
    return program_of(open_resnet_job(flags, /*with_data=*/false));
  }
  if (is_text_model(request.model)) {
    BertFlags flags;
    fill_in(flags, request);
    flags.clip = request.clip.value_or(flags.clip);
    flags.task = flags.network().tasks.front().name;
    flags.length = request.length > 0 ? request.length : 128;
    return program_of(open_bert_job(flags, /*with_data=*/false));
  }
  if (contains(step_names(), request.model)) {
    return [request] { return std::vector{make_step(request)}; };
  }
  throw UsageError("unknown network '" + request.model +
                   "'; available: " + listed(capturable_models()));
}

}  // namespace

std::vector<std::string> capturable_models() {
  std::vector<std::string> names = image_model_names();
  for (const auto* more : {&text_model_names(), &step_names()}) {
    names.insert(names.end(), more->begin(), more->end());
  }
  return names;
}

StepTrace capture_model(const CaptureRequest& request) {
  const Program program = open(request);
  // A policy that may evict, though nothing has to go: variants of calls follow from recipes,
  // which are kept only then.
  Session session({.device = "sim:" + request.profile,
                   .threads = 1,
                   .budget = Bytes(int64_t{1} << 50),
                   .policy = "lru",
                   .plan = false});
  const std::function<void()> step = program().front();
  session.step(step);
  return session.record_step(step);
}

}  // namespace tidemark

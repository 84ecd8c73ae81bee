// A training step of a chain of layers, as a problem.
//
//   f1 -> f2 -> ... -> fn -> loss -> bn -> ... -> b2        bk: gradient of layer k's input
//                               \-> wn ...    -> w1         wk: of its weight, from x(k-1)
//                                    \-> un ...  -> u1      uk: the update, `steps` operators
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "runtime/planner/problem.h"
#include "tests/runtime/planner/problem_builder.h"

namespace tidemark::planner {

struct ChainOptions {
  int layers = 3;
  int steps = 1;  // operators of an update; with more than one, each passes on a temporary
  int64_t activation = 10, weight = 20;
  bool moment = false;   // an update is: the moment's decay, the gradient added to it, its use
  bool labelled = true;  // gradients are of that kind
  bool labels = false;   // an operator makes the loss's labels
  bool read_at_end = false;  // the loss's value is read after everything else
};

struct TrainingChain {
  Problem problem;
  std::vector<OpId> forward, input_gradient, weight_gradient;  // per layer
  std::vector<std::vector<OpId>> update;                       // per layer
  OpId labels = kNone, loss = kNone, read = kNone;
};

inline TrainingChain training_chain(const ChainOptions& options) {
  TrainingChain chain;
  Problem& problem = chain.problem;
  const auto storage = [&](const std::string& name, int64_t size, Kind kind) {
    const bool hidden = kind == Kind::kGradient && !options.labelled;
    return add_storage(problem, name, size, hidden ? Kind::kActivation : kind);
  };
  const auto op = [&](const std::string& name, std::vector<StorageId> inputs,
                      std::vector<StorageId> outputs) {
    return add_operator(problem, name, std::move(inputs), std::move(outputs));
  };
  const auto n = static_cast<size_t>(options.layers);
  StorageId labels = kNone;
  if (options.labels) {
    labels = storage("labels", options.activation, Kind::kData);
    chain.labels = op("labels", {}, {labels});
  }
  std::vector<StorageId> x{storage("x0", options.activation, Kind::kData)}, w(n + 1, kNone);
  problem.storages[x[0]].at_start = true;
  chain.forward.assign(n + 1, kNone);
  chain.input_gradient = chain.weight_gradient = chain.forward;
  chain.update.resize(n + 1);
  for (size_t k = 1; k <= n; ++k) {
    w[k] = storage("w" + std::to_string(k), options.weight, Kind::kParameter);
    problem.storages[w[k]].at_start = problem.storages[w[k]].at_end = true;
    x.push_back(storage("x" + std::to_string(k), options.activation, Kind::kActivation));
    chain.forward[k] = op("f" + std::to_string(k), {x[k - 1], w[k]}, {x[k]});
  }
  StorageId gradient = storage("dx" + std::to_string(n), options.activation, Kind::kGradient);
  chain.loss = op("loss", {x[n]}, {gradient});
  if (options.labels) problem.operators[chain.loss].inputs.push_back(labels);
  const StorageId value = storage("value", 1, Kind::kActivation);
  problem.operators[chain.loss].outputs.push_back(value);
  for (size_t k = n; k > 0; --k) {
    const std::string number = std::to_string(k);
    const StorageId dw = storage("dw" + number, options.weight, Kind::kGradient);
    chain.weight_gradient[k] = op("w" + number, {gradient, x[k - 1]}, {dw});
    if (k > 1) {
      const StorageId next =
          storage("dx" + std::to_string(k - 1), options.activation, Kind::kGradient);
      chain.input_gradient[k] = op("b" + number, {gradient, w[k]}, {next});
      gradient = next;
    }
    StorageId from = dw;
    if (options.moment) {
      const auto state = [&](const std::string& name) {
        return storage(name + number, options.weight, Kind::kOptimizerState);
      };
      const StorageId m = state("m"), decayed = state("m'"), added = state("m''");
      problem.storages[m].at_start = problem.storages[m].at_end = true;
      problem.storages[decayed].alias_of = problem.storages[added].alias_of = m;
      chain.update[k].push_back(op("u" + number, {m}, {decayed}));
      chain.update[k].push_back(op("u" + number, {decayed, dw}, {added}));
      from = added;
    }
    for (int step = 1; step < options.steps; ++step) {
      const StorageId to = storage("t" + number, options.weight, Kind::kActivation);
      chain.update[k].push_back(op("u" + number, {from, w[k]}, {to}));
      from = to;
    }
    std::vector<StorageId> used{from, w[k]};
    if (options.moment) used.push_back(dw);
    const StorageId updated = storage("w'" + number, options.weight, Kind::kParameter);
    problem.storages[updated].alias_of = w[k];
    chain.update[k].push_back(op("u" + number, std::move(used), {updated}));
    for (const OpId reader : {chain.forward[k], chain.input_gradient[k]}) {
      if (reader != kNone) problem.operators.back().after.push_back(reader);
    }
  }
  if (options.read_at_end) {
    chain.read = op("read", {value}, {});
    for (OpId before = 0; before < chain.read; ++before) {
      problem.operators.back().after.push_back(before);
    }
  }
  return chain;
}

}  // namespace tidemark::planner

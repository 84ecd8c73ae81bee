#include "runtime/planner/papers/olla/lifetime_program.h"

#include <algorithm>
#include <utility>

namespace tidemark::planner::olla {

RowOfBits::RowOfBits(std::string name, double lower, double upper)
    : row_{.name = std::move(name), .lower = lower, .upper = upper} {}

RowOfBits& RowOfBits::add(Bit bit, double factor) {
  if (bit.variable >= 0) return add(bit.variable, factor);
  row_.lower -= factor * bit.known;
  row_.upper -= factor * bit.known;
  return *this;
}

RowOfBits& RowOfBits::add(int variable, double factor) {
  row_.terms.push_back({variable, factor});
  return *this;
}

void RowOfBits::add_to(Program& program) {
  if (row_.terms.empty() && row_.lower <= 0 && row_.upper >= 0) return;
  program.add_row(std::move(row_));
}

LifetimeProgram::LifetimeProgram(const Graph& graph, const Spans& spans, bool one_per_step,
                                 double unit)
    : graph_(graph), spans_(spans), unit_(unit) {
  add_operators(one_per_step);
  add_tensors();
  add_peak();
}

int64_t LifetimeProgram::term_count(const Graph& graph, const Spans& spans) {
  int64_t count = 0;
  for (size_t v = 0; v < graph.op_count(); ++v) {
    const int64_t span = spans.alap[v] - spans.asap[v] + 1;
    count += span * static_cast<int64_t>(1 + 2 * graph.fanin[v].size());
  }
  for (size_t e = 0; e < graph.tensors.size(); ++e) {
    count += 6 * static_cast<int64_t>(std::max(0, spans.last[e] - spans.first[e] + 1));
  }
  return count;
}

std::string LifetimeProgram::at(const char* what, size_t id, int t) const {
  return what + std::string("[") + std::to_string(id) + "," + std::to_string(t) + "]";
}

Bit LifetimeProgram::run(OpId v, int t) const {
  if (t < spans_.asap[v] || t > spans_.alap[v]) return {};
  if (first_run_[v] < 0) return {-1, 1};
  return {first_run_[v] + t - spans_.asap[v], 0};
}

Bit LifetimeProgram::created(int tensor, int t) const {
  const OpId source = graph_.tensors[tensor].source;
  return source == kNone ? Bit{} : run(source, t);
}

Bit LifetimeProgram::preserved(int tensor, int t) const {
  const auto at = static_cast<size_t>(t - spans_.first[tensor]);
  if (t < spans_.first[tensor] || at >= kept_[tensor].size()) return {};
  return kept_[tensor][at];
}

void LifetimeProgram::add_operators(bool one_per_step) {
  for (size_t v = 0; v < graph_.op_count(); ++v) {
    if (spans_.asap[v] == spans_.alap[v]) {
      first_run_.push_back(-1);
      continue;
    }
    first_run_.push_back(static_cast<int>(program_.variables.size()));
    RowOfBits once(at("(3) once", v, 0), 1, 1);
    for (int t = spans_.asap[v]; t <= spans_.alap[v]; ++t) {
      once.add(program_.add_binary(at("X", v, t)), 1);
    }
    once.add_to(program_);
  }
  if (!one_per_step) return;
  for (int t = 0; t < spans_.steps; ++t) {
    RowOfBits row(at("one per step", 0, t), -kInfinity, 1);
    for (size_t v = 0; v < graph_.op_count(); ++v) row.add(run(static_cast<OpId>(v), t));
    row.add_to(program_);
  }
}

void LifetimeProgram::add_tensors() {
  kept_.resize(graph_.tensors.size());
  for (size_t i = 0; i < graph_.tensors.size(); ++i) {
    const auto e = static_cast<int>(i);
    const Tensor& tensor = graph_.tensors[i];
    for (int t = spans_.first[i]; t <= spans_.last[i]; ++t) {
      const bool forced = t >= spans_.forced_first[i] && t <= spans_.forced_last[i];
      kept_[i].push_back(forced ? Bit{-1, 1} : Bit{program_.add_binary(at("P", i, t)), 0});
    }
    for (int t = spans_.first[i]; t <= spans_.last[i]; ++t) {
      RowOfBits(at("(1)", i, t), -kInfinity, 1)
          .add(created(e, t))
          .add(preserved(e, t))
          .add_to(program_);
      if (t == 0) continue;  // there at the start
      RowOfBits(at("(2)", i, t), -kInfinity, 0)
          .add(preserved(e, t))
          .add(preserved(e, t - 1), -1)
          .add(created(e, t - 1), -1)
          .add_to(program_);
    }
    if (tensor.kept) {
      RowOfBits(at("kept", i, spans_.steps - 1), 1, kInfinity)
          .add(created(e, spans_.steps - 1))
          .add(preserved(e, spans_.steps - 1))
          .add_to(program_);
    }
    for (const OpId v : tensor.sinks) {
      for (int t = spans_.asap[v]; t <= spans_.alap[v]; ++t) {
        RowOfBits(at("(4)", i, t), -kInfinity, 0)
            .add(run(v, t))
            .add(preserved(e, t), -1)
            .add_to(program_);
      }
    }
  }
}

void LifetimeProgram::add_peak() {
  peak_ = program_.add_variable({.name = "peak_no_frag", .cost = 1});
  for (int t = 0; t < spans_.steps; ++t) {
    RowOfBits row(at("(13)", 0, t), -kInfinity, -static_cast<double>(graph_.resident) / unit_);
    row.add(peak_, -1);
    // One term per variable: the outputs of an operator share one.
    std::vector<std::pair<int, double>> terms;
    for (size_t i = 0; i < graph_.tensors.size(); ++i) {
      const double size = static_cast<double>(graph_.tensors[i].size) / unit_;
      if (size == 0) continue;
      for (const Bit bit :
           {created(static_cast<int>(i), t), preserved(static_cast<int>(i), t)}) {
        if (bit.variable >= 0) terms.emplace_back(bit.variable, size);
        if (bit.variable < 0) row.add(bit, size);
      }
    }
    std::sort(terms.begin(), terms.end());
    for (size_t k = 0; k < terms.size();) {
      double sum = 0;
      const int variable = terms[k].first;
      for (; k < terms.size() && terms[k].first == variable; ++k) sum += terms[k].second;
      row.add(variable, sum);
    }
    row.add_to(program_);
  }
}

std::vector<int> LifetimeProgram::timesteps(const std::vector<double>& values) const {
  std::vector<int> result = spans_.asap;
  for (size_t v = 0; v < result.size(); ++v) {
    if (first_run_[v] < 0) continue;
    while (result[v] < spans_.alap[v] &&
           values[run(static_cast<OpId>(v), result[v]).variable] < 0.5) {
      ++result[v];
    }
  }
  return result;
}

std::vector<double> LifetimeProgram::solution(const std::vector<int>& timesteps) const {
  std::vector<double> values(program_.variables.size(), 0);
  const auto set = [&](Bit bit) {
    if (bit.variable >= 0) values[bit.variable] = 1;
  };
  for (size_t v = 0; v < timesteps.size(); ++v) set(run(static_cast<OpId>(v), timesteps[v]));
  for (size_t i = 0; i < graph_.tensors.size(); ++i) {
    const Tensor& tensor = graph_.tensors[i];
    const int begin = tensor.source == kNone ? 0 : timesteps[tensor.source] + 1;
    int end = tensor.source == kNone ? 0 : -1;
    for (const OpId v : tensor.sinks) end = std::max(end, timesteps[v]);
    if (tensor.kept) end = spans_.steps - 1;
    for (int t = begin; t <= end; ++t) set(preserved(static_cast<int>(i), t));
  }
  values[peak_] = static_cast<double>(peak_of(timesteps)) / unit_;
  return values;
}

int64_t peak_of(const Graph& graph, int steps, const std::vector<int>& timesteps) {
  std::vector<int64_t> change(static_cast<size_t>(steps) + 1, 0);
  for (const Tensor& tensor : graph.tensors) {
    const int begin = tensor.source == kNone ? 0 : timesteps[tensor.source];
    int end = begin;
    for (const OpId v : tensor.sinks) end = std::max(end, timesteps[v]);
    if (tensor.kept) end = steps - 1;
    change[begin] += tensor.size;
    change[end + 1] -= tensor.size;
  }
  int64_t load = graph.resident, most = load;
  for (const int64_t c : change) most = std::max(most, load += c);
  return most;
}

}  // namespace tidemark::planner::olla

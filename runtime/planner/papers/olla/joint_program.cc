#include "runtime/planner/papers/olla/joint_program.h"

#include <algorithm>
#include <optional>
#include <string>

#include "runtime/planner/layout/heuristics.h"
#include "runtime/planner/papers/olla/location_program.h"

namespace tidemark::planner::olla {

int64_t JointProgram::term_count(const Graph& graph, const Spans& spans) {
  const auto tensors = static_cast<int64_t>(graph.tensors.size());
  return LifetimeProgram::term_count(graph, spans) +
         tensors * (tensors - 1) / 2 * spans.steps * 6;
}

JointProgram::JointProgram(const Graph& graph, const Spans& spans, bool precedence, double unit,
                           LifetimeProgram& lifetimes)
    : graph_(graph),
      spans_(spans),
      unit_(unit),
      lifetimes_(lifetimes),
      address_(graph.tensors.size(), -1) {
  Program& program = lifetimes_.program();
  program.variables[lifetimes_.peak()].cost = 0;
  const double resident = static_cast<double>(graph.resident) / unit;
  double big = resident;  // M
  for (const Tensor& tensor : graph.tensors) big += static_cast<double>(tensor.size) / unit;
  peak_ = program.add_variable({.name = "peak", .upper = big, .cost = 1});
  program.add_row({.name = "peak >= peak_no_frag",
                   .lower = 0,
                   .terms = {{peak_, 1}, {lifetimes_.peak(), -1}}});
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const double size = static_cast<double>(graph.tensors[i].size) / unit;
    if (size == 0) continue;
    address_[i] = program.add_variable(
        {.name = pair_name("A", i, i), .lower = resident, .upper = big - size});
    program.add_row({.name = pair_name("(8)", i, i),
                     .upper = -size,
                     .terms = {{address_[i], 1}, {peak_, -1}}});
  }
  std::optional<Precedence> apart;
  if (precedence) apart.emplace(graph, spans);
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    for (size_t j = i + 1; j < graph.tensors.size(); ++j) {
      const auto one = static_cast<int>(i), other = static_cast<int>(j);
      if (address_[i] < 0 || address_[j] < 0) continue;
      if (apart && apart->never_together(one, other)) continue;
      const int a = program.add_binary(pair_name("a", i, j)),
                b = program.add_binary(pair_name("b", i, j));
      pairs_.push_back({one, other, a, b});
      program.add_row({.name = pair_name("(6)", i, j), .upper = 1, .terms = {{a, 1}, {b, 1}}});
      for (int t = 0; t < spans.steps; ++t) {
        // a + b - live[i,t] - live[j,t] >= -1; an operator that creates both is one variable.
        RowOfBits row(pair_name("(6)", i, j), -1, kInfinity);
        row.add(a, 1).add(b, 1);
        const Bit x = lifetimes_.created(one, t), y = lifetimes_.created(other, t);
        if (x.variable >= 0 && x.variable == y.variable) {
          row.add(x, -2);
        } else {
          row.add(x, -1).add(y, -1);
        }
        row.add(lifetimes_.preserved(one, t), -1).add(lifetimes_.preserved(other, t), -1);
        row.add_to(program);
      }
      program.add_row({.name = pair_name("(7a)", i, j),
                       .upper = big - static_cast<double>(graph.tensors[i].size) / unit,
                       .terms = {{address_[i], 1}, {address_[j], -1}, {a, big}}});
      program.add_row({.name = pair_name("(7b)", i, j),
                       .lower = static_cast<double>(graph.tensors[j].size) / unit - big,
                       .terms = {{address_[i], 1}, {address_[j], -1}, {b, -big}}});
    }
  }
}

std::vector<Buffer> JointProgram::buffers(const std::vector<int>& timesteps) const {
  std::vector<Buffer> result;
  for (const Tensor& tensor : graph_.tensors) {
    int64_t begin = tensor.source == kNone ? 0 : timesteps[tensor.source], end = begin;
    for (const OpId v : tensor.sinks) end = std::max<int64_t>(end, timesteps[v]);
    if (tensor.kept) end = spans_.steps - 1;
    result.push_back({begin, end + 1, Bytes(tensor.size)});
  }
  return result;
}

Offsets JointProgram::offsets(const std::vector<double>& values,
                              const std::vector<int>& timesteps) const {
  const std::vector<Buffer> rectangles = buffers(timesteps);
  const std::vector<size_t> order = by_address(address_, values);
  Offsets result(address_.size());
  for (size_t k = 0; k < order.size(); ++k) {
    const Buffer& b = rectangles[order[k]];
    result[order[k]] = Offset(graph_.resident);
    for (size_t below = 0; below < k; ++below) {
      const Buffer& other = rectangles[order[below]];
      if (b.begin >= other.end || other.begin >= b.end) continue;
      result[order[k]] = std::max(result[order[k]], result[order[below]] + other.size);
    }
  }
  return result;
}

std::vector<double> JointProgram::solution(const std::vector<int>& timesteps,
                                           const Offsets& offsets) const {
  std::vector<double> values = lifetimes_.solution(timesteps);
  double top = static_cast<double>(graph_.resident) / unit_;
  for (size_t i = 0; i < address_.size(); ++i) {
    if (address_[i] < 0) continue;
    const double at = static_cast<double>(offsets[i].value()) / unit_;
    values[address_[i]] = at;
    top = std::max(top, at + static_cast<double>(graph_.tensors[i].size) / unit_);
  }
  values[peak_] = top;
  const std::vector<Buffer> rectangles = buffers(timesteps);
  for (const Pair& pair : pairs_) {
    const Buffer &x = rectangles[pair.i], &y = rectangles[pair.j];
    if (x.begin >= y.end || y.begin >= x.end) continue;
    values[offsets[pair.i] < offsets[pair.j] ? pair.a : pair.b] = 1;
  }
  return values;
}

}  // namespace tidemark::planner::olla

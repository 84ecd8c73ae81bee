#include "runtime/planner/io/order_graph.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>

#include "runtime/core/errors.h"
#include "runtime/core/located_json.h"

namespace tidemark::planner {
namespace {

using Json = nlohmann::json;

class Importer {
 public:
  Importer(const Json& json, std::string file, std::string where, Parameters parameters)
      : json_(json),
        file_(std::move(file)),
        where_(std::move(where)),
        resident_(parameters == Parameters::kResident) {}

  OrderInstance run() {
    if (!json_.is_object()) fail("", "not an object");
    if (json_.contains("name") && json_["name"].is_string()) result_.name = json_["name"];
    if (json_.contains("unused_weight_size")) {
      result_.extra = Bytes(size(json_["unused_weight_size"], "unused_weight_size"));
    }
    read_nodes();
    read_edges();
    make_operators();
    make_storages();
    try {
      check_problem(result_.problem);
    } catch (const UsageError& error) {
      fail("", error.what());
    }
    if (sum_ > INT64_MAX / 4) fail("", "the sum of the sizes is too large");
    return std::move(result_);
  }

 private:
  struct Node {
    std::string name, op;
    int64_t order = -1;
    int in = 0, out = 0;
    OpId id = kNone;
  };
  struct Edge {
    std::string name, place;
    int64_t size = 0;
    size_t source = 0;
    std::vector<size_t> sinks;
  };

  [[noreturn]] void fail(const std::string& place, const std::string& what) const {
    std::string at = where_ + place;
    throw DataError(file_, (at.empty() ? "" : at + ": ") + what);
  }

  int64_t size(const Json& value, const std::string& place) {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() &&
         value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))) {
      fail(place, "not a whole number of bytes below 2^63");
    }
    const auto bytes = value.get<int64_t>();
    if (bytes < 0) fail(place, "a negative size, " + std::to_string(bytes));
    if (__builtin_add_overflow(sum_, bytes, &sum_))
      fail(place, "the sum of the sizes up to here overflows");
    return bytes;
  }
  const Json& list(const Json& object, const char* key, const std::string& place) const {
    if (!object.contains(key) || !object[key].is_array()) {
      fail(place, "no array '" + std::string(key) + "'");
    }
    return object[key];
  }
  std::string text(const Json& object, const char* key, const std::string& place) const {
    if (!object.is_object() || !object.contains(key) || !object[key].is_string()) {
      fail(place, "no string '" + std::string(key) + "'");
    }
    return object[key];
  }

  void read_nodes() {
    const Json& nodes = list(json_, "nodes", "");
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::string place = "nodes[" + std::to_string(i) + "]";
      Node node;
      node.name = text(nodes[i], "name", place);
      if (nodes[i].contains("op")) node.op = text(nodes[i], "op", place);
      if (nodes[i].contains("order") && !nodes[i]["order"].is_null()) {
        if (!nodes[i]["order"].is_number_integer()) fail(place, "order is not a whole number");
        node.order = nodes[i]["order"];
        has_order_ = true;
      }
      if (!index_.emplace(node.name, i).second) {
        fail(place, "the name '" + node.name + "' appears twice");
      }
      nodes_.push_back(std::move(node));
    }
  }

  size_t node(const std::string& name, const std::string& place) const {
    const auto found = index_.find(name);
    if (found == index_.end()) fail(place, "there is no node '" + name + "'");
    return found->second;
  }

  void read_edges() {
    const Json& edges = list(json_, "edges", "");
    for (size_t i = 0; i < edges.size(); ++i) {
      const std::string place = "edges[" + std::to_string(i) + "]";
      Edge edge;
      edge.place = place;
      edge.name = text(edges[i], "name", place);
      if (!edges[i].contains("size")) fail(place, "no size");
      edge.size = size(edges[i]["size"], place + ".size");
      edge.source = node(text(edges[i], "source", place), place + ".source");
      ++nodes_[edge.source].out;
      const Json& sinks = list(edges[i], "sinks", place);
      for (size_t k = 0; k < sinks.size(); ++k) {
        const std::string at = place + ".sinks[" + std::to_string(k) + "]";
        if (!sinks[k].is_string()) fail(at, "not a string");
        edge.sinks.push_back(node(sinks[k], at));
        if (edge.sinks.back() == edge.source) fail(at, "an edge from a node to itself");
        ++nodes_[edge.sinks.back()].in;
      }
      edges_.push_back(std::move(edge));
    }
  }

  bool is_source(const Node& n) const {
    return resident_ && (n.op == "stateful_node" || n.op == "placeholder") && n.in == 0;
  }
  bool is_sink(const Node& n) const {
    return resident_ && n.op == "stateful_node_sink" && n.out == 0;
  }

  // Added sources go first and added sinks last.
  static int64_t program_position(const Node& n) {
    return n.order < 0 && n.in > 0 && n.out == 0 ? INT64_MAX : n.order;
  }

  void make_operators() {
    std::vector<size_t> position(nodes_.size());
    std::iota(position.begin(), position.end(), size_t{0});
    if (has_order_) {
      std::stable_sort(position.begin(), position.end(), [&](size_t a, size_t b) {
        return program_position(nodes_[a]) < program_position(nodes_[b]);
      });
    }
    for (const size_t i : position) {
      if (is_source(nodes_[i])) {
        result_.first.push_back(nodes_[i].name);
      } else if (is_sink(nodes_[i])) {
        result_.last.push_back(nodes_[i].name);
      } else {
        nodes_[i].id = static_cast<OpId>(result_.problem.operators.size());
        Operator op;
        op.name = nodes_[i].name;
        result_.problem.operators.push_back(std::move(op));
      }
    }
  }

  void make_storages() {
    std::vector<Operator>& ops = result_.problem.operators;
    for (const Edge& edge : edges_) {
      const Node& source = nodes_[edge.source];
      if (edge.size == 0) {
        for (const size_t sink : edge.sinks) {
          if (source.id != kNone && nodes_[sink].id != kNone) {
            ops[nodes_[sink].id].after.push_back(source.id);
          }
        }
        continue;
      }
      const auto id = static_cast<StorageId>(result_.problem.storages.size());
      Storage storage;
      storage.name = edge.name;
      storage.size = Bytes(edge.size);
      storage.at_start = source.id == kNone;
      storage.kind = source.op == "placeholder"     ? Kind::kData
                     : source.op == "stateful_node" ? Kind::kParameter
                                                    : Kind::kActivation;
      if (source.id != kNone) ops[source.id].outputs.push_back(id);
      for (const size_t sink : edge.sinks) {
        if (nodes_[sink].id == kNone) {
          storage.at_end = true;
        } else {
          ops[nodes_[sink].id].inputs.push_back(id);
        }
      }
      result_.problem.storages.push_back(std::move(storage));
    }
    for (Operator& op : ops) {
      std::sort(op.inputs.begin(), op.inputs.end());
      op.inputs.erase(std::unique(op.inputs.begin(), op.inputs.end()), op.inputs.end());
    }
  }

  const Json& json_;
  std::string file_, where_;
  bool resident_;
  OrderInstance result_;
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::unordered_map<std::string, size_t> index_;
  bool has_order_ = false;
  int64_t sum_ = 0;
};

}  // namespace

std::vector<OrderInstance> parse_order_graphs(const std::string& text, const std::string& name,
                                              Parameters parameters) {
  const Json json = parse_located<Json>(name, text);
  std::vector<OrderInstance> result;
  try {
    if (json.is_array()) {
      for (size_t i = 0; i < json.size(); ++i) {
        result.push_back(
            Importer(json[i], name, "[" + std::to_string(i) + "].", parameters).run());
      }
    } else {
      result.push_back(Importer(json, name, "", parameters).run());
    }
  } catch (const Json::exception& error) {
    throw DataError(name, error.what());
  }
  return result;
}

std::vector<std::string> node_order(const OrderInstance& instance,
                                    const std::vector<OpId>& order) {
  std::vector<std::string> names = instance.first;
  for (const OpId op : order) names.push_back(instance.problem.operators[op].name);
  names.insert(names.end(), instance.last.begin(), instance.last.end());
  return names;
}

}  // namespace tidemark::planner

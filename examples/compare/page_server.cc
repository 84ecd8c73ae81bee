#include "examples/compare/page_server.h"

#include <httplib.h>
#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "examples/compare/snapshot_json.h"
#include "runtime/core/errors.h"
#include "runtime/delta/heuristics/heuristic.h"
#include "runtime/delta/policies/policy.h"

namespace tidemark::compare {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kAddress = "127.0.0.1";
constexpr size_t kMostBody = 4096;
constexpr const char* kJson = "application/json";

enum Status {
  kOk = 200,
  kAccepted = 202,
  kNoContent = 204,
  kBadRequest = 400,
  kForbidden = 403,
  kNotFound = 404,
  kMethodNotAllowed = 405,
  kConflict = 409,
  kWrongType = 415,
};

struct File {
  const char* name;
  const char* type;
};
constexpr File kFiles[] = {{"index.html", "text/html; charset=utf-8"},
                           {"page.css", "text/css; charset=utf-8"},
                           {"page.js", "text/javascript; charset=utf-8"},
                           {"charts.js", "text/javascript; charset=utf-8"},
                           {"d3.min.js", "text/javascript; charset=utf-8"}};

// Beside the program, or where they were built.
std::string page_folder() {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    fs::path installed =
        program.parent_path().parent_path() / "share/tidemark/compare_heuristics";
    if (fs::exists(installed / "index.html", error)) return installed.string();
  }
  return TIDEMARK_PAGE_DIR;
}

std::string read_page_file(const std::string& name) {
  const std::string path = page_folder() + "/" + name;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file) throw UsageError("--serve: " + path + " cannot be read; build the project again");
  return text.str();
}

void answer(httplib::Response& response, int status, const Json& json) {
  response.status = status;
  response.set_content(json.dump(-1, ' ', false, Json::error_handler_t::replace), kJson);
}

void refuse(httplib::Response& response, int status, const std::string& why) {
  answer(response, status, {{"error", why}});
}

// "" for a name that is not there. Throws UsageError for what is no text.
std::string text_of(const Json& json, const char* name) {
  const auto at = json.find(name);
  if (at == json.end() || at->is_null()) return "";
  if (!at->is_string()) throw UsageError(fmt::format("'{}' is not text", name));
  return at->get<std::string>();
}

int lane_of(const Json& json) {
  const auto at = json.find("lane");
  if (at == json.end() || at->is_null()) return 0;
  if (!at->is_number_integer()) throw UsageError("'lane' is not a whole number");
  const auto lane = at->get<int64_t>();
  if (lane < 1 || lane > 1'000'000) throw UsageError(fmt::format("there is no lane {}", lane));
  return static_cast<int>(lane);
}

LaneSpec spec_of(const Json& json) {
  const std::string policy = text_of(json, "policy"), filter = text_of(json, "filter");
  const std::string budget = text_of(json, "budget");
  if (policy.empty()) throw UsageError("'policy' is missing");
  return parse_lane(policy + (filter.empty() ? "" : ":" + filter) +
                    (budget.empty() ? "" : "@" + budget));
}

// Throws UsageError.
Command command_of(const std::string& body) {
  const Json json = Json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) throw UsageError("the body is not a JSON object");
  const std::string what = text_of(json, "do");
  Command command;
  command.lane = lane_of(json);
  const bool names_lane = command.lane != 0;
  if (what == "pause") {
    command.what = Command::kPause;
  } else if (what == "resume") {
    command.what = Command::kResume;
  } else if (what == "add") {
    command.what = Command::kAdd;
    command.spec = spec_of(json);
  } else if (what == "switch") {
    command.what = Command::kSwitch;
    if (!names_lane) throw UsageError("'lane' is missing");
    command.spec = spec_of(json);
  } else if (what == "remove") {
    command.what = Command::kRemove;
    if (!names_lane) throw UsageError("'lane' is missing");
  } else if (what == "budget") {
    command.what = Command::kBudget;
    const std::string budget = text_of(json, "budget");
    if (budget.empty()) throw UsageError("'budget' is missing");
    command.budget = parse_budget(budget);
  } else {
    throw UsageError("'do' is none of switch, add, remove, budget, pause, resume");
  }
  return command;
}

Json choices() {
  Json json;
  json["policies"] = Json::array({{{"name", "none"}, {"about", "never release"}}});
  for (const PolicyInfo& policy : policies()) {
    json["policies"].push_back({{"name", policy.name},
                                {"about", policy.about},
                                {"filters", policy.name == "delta" || policy.name == "tide"}});
  }
  json["filters"] = Json::array();
  for (const Heuristic& filter : heuristics()) json["filters"].push_back(filter.name);
  return json;
}

}  // namespace

struct PageServer::Impl {
  explicit Impl(Comparison& c) : comparison(c) {}

  // "localhost:8080" and the like, lower case as browsers send it.
  bool is_this_machine(const std::string& host) const {
    for (const char* name : {"127.0.0.1", "localhost"}) {
      if (host == fmt::format("{}:{}", name, port)) return true;
      if (port == 80 && host == name) return true;
    }
    return false;
  }

  httplib::Server::HandlerResponse guard(const httplib::Request& request,
                                         httplib::Response& response) const {
    using Handled = httplib::Server::HandlerResponse;
    const std::string host = request.get_header_value("Host");
    if (!is_this_machine(host)) {
      refuse(response, kForbidden,
             "this page is for this machine alone: open " +
                 fmt::format("http://{}:{}", kAddress, port));
      return Handled::Handled;
    }
    if (request.method == "GET" || request.method == "HEAD") return Handled::Unhandled;
    if (request.method != "POST") {
      refuse(response, kMethodNotAllowed, "only GET and POST are understood");
      return Handled::Handled;
    }
    if (request.get_header_value("Origin") != "http://" + host) {
      refuse(response, kForbidden, "commands are taken from this page alone");
      return Handled::Handled;
    }
    return Handled::Unhandled;
  }

  void add_routes() {
    for (const File& file : kFiles) {
      const std::string text = read_page_file(file.name);
      const auto serve = [text, type = file.type](const httplib::Request&,
                                                  httplib::Response& response) {
        response.set_content(text, type);
      };
      const std::string name = file.name;
      server.Get("/" + name, serve);
      if (name == "index.html") server.Get("/", serve);
    }
    server.Get("/api/choices", [](const httplib::Request&, httplib::Response& response) {
      answer(response, kOk, choices());
    });
    server.Get("/api/snapshot",
               [this](const httplib::Request& request, httplib::Response& response) {
                 snapshot(request, response);
               });
    server.Get(R"(/api/lane/(\d{1,6}))",
               [this](const httplib::Request& request, httplib::Response& response) {
                 lane(std::stoi(request.matches[1]), response);
               });
    server.Post("/api/commands",
                [this](const httplib::Request& request, httplib::Response& response) {
                  order(request, response);
                });
  }

  void snapshot(const httplib::Request& request, httplib::Response& response) const {
    const std::string after = request.get_param_value("after");
    uint64_t number = 0;
    if (!after.empty()) {
      if (after.size() > 18 || after.find_first_not_of("0123456789") != std::string::npos) {
        refuse(response, kBadRequest, "'after' is not a snapshot's number");
        return;
      }
      number = std::stoull(after);
    }
    const std::shared_ptr<const Snapshot> now = comparison.snapshot();
    if (number > 0 && now->number == number) {
      response.status = kNoContent;
      return;
    }
    answer(response, kOk, to_json(*now));
  }

  void lane(int id, httplib::Response& response) const {
    const std::shared_ptr<const Snapshot> now = comparison.snapshot();
    for (const auto& lane : now->lanes) {
      if (lane->id != id) continue;
      answer(response, kOk, details_to_json(*now, *lane));
      return;
    }
    refuse(response, kNotFound, fmt::format("there is no lane {}", id));
  }

  void order(const httplib::Request& request, httplib::Response& response) const {
    if (!request.get_header_value("Content-Type").starts_with(kJson)) {
      refuse(response, kWrongType, "commands are JSON (Content-Type: application/json)");
      return;
    }
    try {
      const uint64_t number = comparison.submit(command_of(request.body));
      answer(response, kAccepted, {{"number", number}});
    } catch (const InfeasibleBudget& error) {
      answer(response, kConflict,
             {{"error", error.what()}, {"minimum_budget_bytes", error.minimum().count()}});
    } catch (const UsageError& error) {
      refuse(response, kBadRequest, error.what());
    }
  }

  void start(int wanted) {
    // No SO_REUSEPORT, which would let two programs share a port without a word.
    server.set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    });
    server.set_payload_max_length(kMostBody);
    server.set_tcp_nodelay(true);
    server.set_default_headers(
        {{"Cache-Control", "no-store"},
         {"X-Content-Type-Options", "nosniff"},
         {"Content-Security-Policy",
          "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"}});
    server.set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          return guard(request, response);
        });
    server.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty()) return;
      refuse(response, response.status,
             response.status == kNotFound ? "there is nothing at " + request.path
                                          : "the request was not understood");
    });
    server.set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, std::exception_ptr problem) {
          try {
            std::rethrow_exception(std::move(problem));
          } catch (const std::exception& error) {
            refuse(response, 500, error.what());
          }
        });
    add_routes();
    const bool bound = wanted == 0 ? (port = server.bind_to_any_port(kAddress)) > 0
                                   : server.bind_to_port(kAddress, port = wanted);
    if (!bound) {
      throw UsageError(fmt::format(
          "--serve: port {} of {} cannot be had, probably another program has it; try another "
          "one, or --serve 0 for any that is free",
          wanted, kAddress));
    }
    thread = std::thread([this] { server.listen_after_bind(); });
    while (!server.is_running()) std::this_thread::yield();
  }

  Comparison& comparison;
  httplib::Server server;
  std::thread thread;
  int port = 0;
};

PageServer::PageServer(Comparison& comparison, int port)
    : impl_(std::make_unique<Impl>(comparison)) {
  impl_->start(port);
}

PageServer::~PageServer() {
  impl_->server.stop();
  if (impl_->thread.joinable()) impl_->thread.join();
}

int PageServer::port() const { return impl_->port; }
std::string PageServer::url() const {
  return fmt::format("http://{}:{}/", kAddress, impl_->port);
}

}  // namespace tidemark::compare

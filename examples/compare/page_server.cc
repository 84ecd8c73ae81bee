#include "examples/compare/page_server.h"

#include <spdlog/fmt/fmt.h>

#include <atomic>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

#include "examples/compare/http_server.h"
#include "examples/compare/snapshot_json.h"
#include "runtime/core/errors.h"
#include "runtime/policy/filters/filter.h"
#include "runtime/policy/registry.h"

namespace tidemark::compare {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kAddress = "127.0.0.1";
constexpr const char* kJson = "application/json";

struct File {
  const char* name;
  const char* type;
};
constexpr File kFiles[] = {{"index.html", "text/html; charset=utf-8"},
                           {"page.css", "text/css; charset=utf-8"},
                           {"page.js", "text/javascript; charset=utf-8"},
                           {"charts.js", "text/javascript; charset=utf-8"},
                           {"d3.min.js", "text/javascript; charset=utf-8"}};

// The folder beside the program, or where the files were built.
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

HttpResponse answer(HttpStatus status, const Json& json) {
  return {status, kJson, json.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

HttpResponse refuse(HttpStatus status, const std::string& why) {
  return answer(status, {{"error", why}});
}

// Accepts digits only, and no more than an integer holds.
template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Returns "" if the name is missing. Throws UsageError if its value is no text.
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
    throw UsageError("'do' must be switch, add, remove, budget, pause or resume");
  }
  return command;
}

Json choices() {
  Json json;
  json["policies"] = Json::array({{{"name", "none"}, {"about", "never release"}}});
  for (const PolicyInfo& policy : policies()) {
    json["policies"].push_back(
        {{"name", policy.name}, {"about", policy.about}, {"filters", policy.takes_filter}});
  }
  json["filters"] = Json::array();
  for (const Filter& filter : filters()) json["filters"].push_back(filter.name);
  return json;
}

}  // namespace

struct PageServer::Impl {
  Impl(Comparison& c, int wanted) : comparison(c) {
    for (const File& file : kFiles) {
      files["/" + std::string(file.name)] = {kOk, file.type, read_page_file(file.name)};
    }
    files["/"] = files.at("/index.html");
    try {
      server = std::make_unique<HttpServer>(
          wanted,
          HttpHandlers{.handle = [this](const auto& request) { return handle(request); },
                       .refused = refuse});
    } catch (const std::system_error& error) {
      throw UsageError(
          fmt::format("--serve: port {} of {} is not available ({}); try another, or --serve 0 "
                      "for any free port",
                      wanted, kAddress, error.code().message()));
    }
    bound = server->port();
  }

  // Accepts "localhost:8080" and the like, in lower case as browsers send it.
  bool is_this_machine(const std::string& host) const {
    for (const char* name : {kAddress, "localhost"}) {
      if (host == fmt::format("{}:{}", name, port())) return true;
      if (port() == 80 && host == name) return true;
    }
    return false;
  }

  HttpResponse handle(const HttpRequest& request) const {
    const std::string& host = request.header("host");
    if (!is_this_machine(host)) {
      return refuse(kForbidden,
                    fmt::format("this page is for this machine only: open {}", url()));
    }
    if (request.method == "GET" || request.method == "HEAD") return get(request);
    if (request.method != "POST") {
      return refuse(kMethodNotAllowed, "only GET and POST are supported");
    }
    if (request.header("origin") != "http://" + host) {
      return refuse(kForbidden, "commands are accepted only from this page");
    }
    return request.path == "/api/commands" ? order(request) : nothing_at(request);
  }

  HttpResponse get(const HttpRequest& request) const {
    constexpr std::string_view kLane = "/api/lane/";
    const auto file = files.find(request.path);
    if (file != files.end()) return file->second;
    if (request.path == "/api/choices") return answer(kOk, choices());
    if (request.path == "/api/snapshot") return snapshot(request.query);
    if (request.path.starts_with(kLane)) {
      const auto id = number_of<uint32_t>(std::string_view(request.path).substr(kLane.size()));
      if (id) return lane(*id);
    }
    return nothing_at(request);
  }

  static HttpResponse nothing_at(const HttpRequest& request) {
    return refuse(kNotFound, "there is nothing at " + request.path);
  }

  HttpResponse snapshot(std::string_view query) const {
    constexpr std::string_view kAfter = "after=";
    uint64_t number = 0;
    if (!query.empty()) {
      const auto after = query.starts_with(kAfter)
                             ? number_of<uint64_t>(query.substr(kAfter.size()))
                             : std::nullopt;
      if (!after) return refuse(kBadRequest, "'after' must be the number of a snapshot");
      number = *after;
    }
    const std::shared_ptr<const Snapshot> now = comparison.snapshot();
    if (number > 0 && now->number == number) return {kNoContent, "", ""};
    return answer(kOk, to_json(*now));
  }

  HttpResponse lane(uint32_t id) const {
    const std::shared_ptr<const Snapshot> now = comparison.snapshot();
    for (const auto& lane : now->lanes) {
      if (static_cast<uint32_t>(lane->id) == id)
        return answer(kOk, details_to_json(*now, *lane));
    }
    return refuse(kNotFound, fmt::format("there is no lane {}", id));
  }

  HttpResponse order(const HttpRequest& request) const {
    if (!request.header("content-type").starts_with(kJson)) {
      return refuse(kWrongType, "commands must be JSON (Content-Type: application/json)");
    }
    try {
      const uint64_t number = comparison.submit(command_of(request.body));
      return answer(kAccepted, {{"number", number}});
    } catch (const InfeasibleBudget& error) {
      return answer(kConflict, {{"error", error.what()},
                                {"minimum_budget_bytes", error.minimum().count()}});
    } catch (const UsageError& error) {
      return refuse(kBadRequest, error.what());
    }
  }

  int port() const { return bound; }
  std::string url() const { return fmt::format("http://{}:{}/", kAddress, port()); }

  Comparison& comparison;
  std::map<std::string, HttpResponse> files;  // by path
  std::atomic<int> bound{0};                  // a request before the port is known is refused
  std::unique_ptr<HttpServer> server;         // the last: its thread uses the others
};

PageServer::PageServer(Comparison& comparison, int port)
    : impl_(std::make_unique<Impl>(comparison, port)) {}
PageServer::~PageServer() = default;
int PageServer::port() const { return impl_->port(); }
std::string PageServer::url() const { return impl_->url(); }

}  // namespace tidemark::compare

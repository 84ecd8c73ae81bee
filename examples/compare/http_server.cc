#include "examples/compare/http_server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <list>
#include <string_view>
#include <system_error>
#include <utility>

namespace tidemark::compare {
namespace {

// The library's limit is above ours: connections in between are accepted, and the oldest one is
// closed instead.
constexpr unsigned kMaxAccepted = 4 * HttpServer::kMaxConnections;

constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"Connection", "close"},
    {"Cache-Control", "no-store"},
    {"X-Content-Type-Options", "nosniff"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Content-Security-Policy",
     "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'"},
};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

MHD_Result add_header(void* headers, MHD_ValueKind /*kind*/, const char* name,
                      const char* value) {
  auto& all = *static_cast<std::map<std::string, std::string>*>(headers);
  const auto [at, is_new] = all.try_emplace(lower_case(name), value ? value : "");
  if (!is_new) at->second.append(", ").append(value ? value : "");
  return MHD_YES;
}

MHD_Result send(MHD_Connection* connection, const HttpResponse& response) {
  MHD_Response* const reply = MHD_create_response_from_buffer(
      response.body.size(), const_cast<char*>(response.body.data()), MHD_RESPMEM_MUST_COPY);
  if (reply == nullptr) return MHD_NO;
  for (const auto& [name, value] : kHeaders) MHD_add_response_header(reply, name, value);
  if (!response.type.empty()) {
    MHD_add_response_header(reply, MHD_HTTP_HEADER_CONTENT_TYPE, response.type.c_str());
  }
  const MHD_Result result =
      MHD_queue_response(connection, static_cast<unsigned>(response.status), reply);
  MHD_destroy_response(reply);
  return result;
}

// Why no body is accepted, or kOk.
HttpStatus judge_body(const HttpRequest& request) {
  if (request.headers.contains("transfer-encoding")) return kLengthRequired;
  const std::string& text = request.header("content-length");
  if (text.empty()) return request.method == "POST" ? kLengthRequired : kOk;
  size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error == std::errc::result_out_of_range || length > HttpServer::kMaxBody) {
    return kBodyTooLarge;
  }
  return error == std::errc() && end == text.data() + text.size() ? kOk : kBadRequest;
}

std::string why(HttpStatus status) {
  switch (status) {
    case kLengthRequired: return "a body needs a Content-Length";
    case kBodyTooLarge:
      return fmt::format("a body must have at most {} bytes", HttpServer::kMaxBody);
    default: return "Content-Length must be a whole number";
  }
}

}  // namespace

const std::string& HttpRequest::header(const std::string& name) const {
  static const std::string none;
  const auto at = headers.find(name);
  return at == headers.end() ? none : at->second;
}

// All but construction runs on the library's thread.
struct HttpServer::Impl {
  Impl(int wanted, HttpHandlers given) : handlers(std::move(given)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(wanted));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    errno = 0;
    daemon = MHD_start_daemon(
        MHD_USE_AUTO | MHD_USE_INTERNAL_POLLING_THREAD, 0, nullptr, nullptr, &Impl::answer,
        this, MHD_OPTION_SOCK_ADDR, reinterpret_cast<sockaddr*>(&address),
        MHD_OPTION_CONNECTION_LIMIT, kMaxAccepted, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxHead, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_URI_LOG_CALLBACK, &Impl::begin_request, this, MHD_OPTION_NOTIFY_COMPLETED,
        &Impl::end_request, this, MHD_OPTION_NOTIFY_CONNECTION, &Impl::note_connection, this,
        MHD_OPTION_END);
    if (daemon == nullptr) {
      throw std::system_error(errno != 0 ? errno : EADDRINUSE, std::generic_category());
    }
  }
  ~Impl() { MHD_stop_daemon(daemon); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Keeps the query as it was sent: the library only offers it in parts.
  static void* begin_request(void* /*impl*/, const char* target, MHD_Connection*) {
    auto* request = new HttpRequest;
    const std::string_view text(target);
    const size_t mark = text.find('?');
    if (mark != std::string_view::npos) request->query = text.substr(mark + 1);
    return request;
  }
  static void end_request(void* /*impl*/, MHD_Connection*, void** request,
                          MHD_RequestTerminationCode) {
    delete static_cast<HttpRequest*>(std::exchange(*request, nullptr));
  }

  // The library calls this first without the body, then with each part of it, then once more.
  static MHD_Result answer(void* impl, MHD_Connection* connection, const char* path,
                           const char* method, const char* /*version*/, const char* part,
                           size_t* size, void** context) {
    const HttpHandlers& handlers = static_cast<Impl*>(impl)->handlers;
    auto& request = *static_cast<HttpRequest*>(*context);
    if (request.method.empty()) {
      request.method = method;
      request.path = path;
      MHD_get_connection_values(connection, MHD_HEADER_KIND, &add_header, &request.headers);
      const HttpStatus verdict = judge_body(request);
      if (verdict == kOk) return MHD_YES;
      return send(connection, handlers.refused(verdict, why(verdict)));
    }
    if (*size > 0) {
      request.body.append(part, *size);
      *size = 0;
      return request.body.size() <= kMaxBody ? MHD_YES : MHD_NO;
    }
    try {
      return send(connection, handlers.handle(request));
    } catch (const std::exception& error) {
      return send(connection, handlers.refused(kInternalError, error.what()));
    }
  }

  static void note_connection(void* impl, MHD_Connection* connection, void** /*context*/,
                              MHD_ConnectionNotificationCode code) {
    auto& open = static_cast<Impl*>(impl)->open;
    const int socket =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      open.remove(socket);
      return;
    }
    open.push_back(socket);
    if (open.size() <= kMaxConnections) return;
    // The library notices that the socket has ended and closes it.
    ::shutdown(open.front(), SHUT_RDWR);
    open.pop_front();
  }

  const HttpHandlers handlers;
  std::list<int> open;  // sockets, the oldest first
  MHD_Daemon* daemon = nullptr;
};

HttpServer::HttpServer(int port, HttpHandlers handlers)
    : impl_(std::make_unique<Impl>(port, std::move(handlers))) {}
HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  return MHD_get_daemon_info(impl_->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}

}  // namespace tidemark::compare

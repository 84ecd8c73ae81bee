#include "examples/compare/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace tidemark::compare {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kEndOfLine = "\r\n", kEndOfHead = "\r\n\r\n";

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// Why a request is not handed on.
struct Refusal {
  HttpStatus status;
  std::string why;
};

std::string_view reason_phrase(HttpStatus status) {
  switch (status) {
    case kOk: return "OK";
    case kAccepted: return "Accepted";
    case kNoContent: return "No Content";
    case kBadRequest: return "Bad Request";
    case kForbidden: return "Forbidden";
    case kNotFound: return "Not Found";
    case kMethodNotAllowed: return "Method Not Allowed";
    case kTimeout: return "Request Timeout";
    case kConflict: return "Conflict";
    case kLengthRequired: return "Length Required";
    case kBodyTooLarge: return "Content Too Large";
    case kWrongType: return "Unsupported Media Type";
    case kHeadTooLarge: return "Request Header Fields Too Large";
    case kInternalError: return "Internal Server Error";
  }
  return "";
}

// RFC 9110, 5.6.2.
bool is_token(std::string_view text) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kMarks.find(c) != std::string_view::npos;
  });
}

std::string_view trimmed(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

void parse_request_line(std::string_view line, HttpRequest& request) {
  const size_t first = std::min(line.find(' '), line.size());
  const size_t last = std::max(first, std::min(line.rfind(' '), line.size()));
  const std::string_view target = line.substr(first, last - first).substr(last > first ? 1 : 0);
  const std::string_view version = line.substr(last);
  request.method = line.substr(0, first);
  if (!is_token(request.method) || (version != " HTTP/1.1" && version != " HTTP/1.0") ||
      !target.starts_with('/') || target.find_first_of(" \t") != std::string_view::npos) {
    throw Refusal{kBadRequest, "the request line is not METHOD PATH HTTP/1.1"};
  }
  const size_t mark = target.find('?');
  request.path = target.substr(0, mark);
  if (mark != std::string_view::npos) request.query = target.substr(mark + 1);
}

// `head` is without the empty line at its end. Throws Refusal.
HttpRequest parse_head(std::string_view head) {
  HttpRequest request;
  size_t headers = 0;
  for (bool first = true; first || !head.empty(); first = false) {
    const size_t end = std::min(head.find(kEndOfLine), head.size());
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + kEndOfLine.size(), head.size()));
    const bool has_control = std::any_of(line.begin(), line.end(), [](char c) {
      const auto code = static_cast<unsigned char>(c);
      return (code < ' ' && c != '\t') || code == 0x7f;
    });
    if (has_control) throw Refusal{kBadRequest, "there are control characters in the headers"};
    if (first) {
      parse_request_line(line, request);
      continue;
    }
    if (++headers > HttpServer::kMaxHeaders) {
      throw Refusal{kHeadTooLarge,
                    fmt::format("there are over {} headers", HttpServer::kMaxHeaders)};
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_token(line.substr(0, colon))) {
      throw Refusal{kBadRequest, "a header is not NAME: VALUE"};
    }
    const std::string_view value = trimmed(line.substr(colon + 1));
    const auto [at, is_new] =
        request.headers.try_emplace(lower_case(line.substr(0, colon)), value);
    if (!is_new) at->second.append(", ").append(value);
  }
  return request;
}

// How long the body is. Throws Refusal.
size_t body_length(const HttpRequest& request) {
  if (request.headers.contains("transfer-encoding")) {
    throw Refusal{kLengthRequired, "chunked bodies are not taken; send Content-Length"};
  }
  const auto at = request.headers.find("content-length");
  if (at == request.headers.end()) {
    if (request.method == "POST") throw Refusal{kLengthRequired, "Content-Length is missing"};
    return 0;
  }
  size_t length = 0;
  if (at->second.empty()) throw Refusal{kBadRequest, "Content-Length is empty"};
  for (const char c : at->second) {
    if (c < '0' || c > '9') throw Refusal{kBadRequest, "Content-Length is not a whole number"};
    // It stays above the bound once it is, so that no number of digits overflows it.
    length = std::min(length * 10 + static_cast<size_t>(c - '0'), HttpServer::kMaxBody + 1);
  }
  if (length > HttpServer::kMaxBody) {
    throw Refusal{kBodyTooLarge, fmt::format("a body has at most {} bytes, not {}",
                                             HttpServer::kMaxBody, at->second)};
  }
  return length;
}

// Nothing as long as more has to come. Throws Refusal.
std::optional<HttpRequest> parse_request(std::string_view text) {
  const size_t end = text.find(kEndOfHead);
  if (std::min(end, text.size()) > HttpServer::kMaxHead) {
    throw Refusal{kHeadTooLarge, fmt::format("request line and headers have at most {} bytes",
                                             HttpServer::kMaxHead)};
  }
  if (end == std::string_view::npos) return std::nullopt;
  HttpRequest request = parse_head(text.substr(0, end));
  const size_t length = body_length(request);
  const std::string_view rest = text.substr(end + kEndOfHead.size());
  if (rest.size() < length) return std::nullopt;
  request.body = rest.substr(0, length);
  return request;
}

std::string to_text(const HttpResponse& response, bool with_body) {
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", static_cast<int>(response.status),
                                 reason_phrase(response.status));
  text +=
      "Connection: close\r\n"
      "Cache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "Cross-Origin-Resource-Policy: same-origin\r\n"
      "Content-Security-Policy: default-src 'self'; img-src 'self' data:; "
      "frame-ancestors 'none'\r\n";
  if (response.status != kNoContent) {
    text += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", response.type,
                        response.body.size());
  }
  text += kEndOfLine;
  if (with_body && response.status != kNoContent) text += response.body;
  return text;
}

}  // namespace

const std::string& HttpRequest::header(const std::string& name) const {
  static const std::string none;
  const auto at = headers.find(name);
  return at == headers.end() ? none : at->second;
}

struct HttpServer::Impl {
  // Draining: the client gets to read the response before the connection is closed; closing
  // while bytes of it are unread would reset it.
  enum class State : uint8_t { kReading, kWriting, kDraining, kClosed };
  struct Connection {
    FileDescriptor socket;
    Clock::time_point due;
    State state = State::kReading;
    std::string text{};  // of the request, then what is left of the response
    size_t done = 0;     // bytes of the response that were sent, then bytes that were drained
  };

  explicit Impl(int wanted)
      : listener(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
        wake(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    const auto check = [](int result) {
      if (result < 0) throw std::system_error(errno, std::generic_category());
      return result;
    };
    check(listener.get());
    check(wake.get());
    // No SO_REUSEPORT, which would let two programs share a port without a word.
    const int yes = 1;
    check(::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(wanted));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    check(::bind(listener.get(), any, size));
    check(::listen(listener.get(), SOMAXCONN));
    check(::getsockname(listener.get(), any, &size));
    port = ntohs(address.sin_port);
  }
  ~Impl() {
    const uint64_t one = 1;
    // Cannot fail: the counter is far from full.
    [[maybe_unused]] const ssize_t n = ::write(wake.get(), &one, sizeof(one));
    if (thread.joinable()) thread.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void run() {
    std::vector<pollfd> polled;
    while (true) {
      polled.assign({{wake.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}});
      auto due = Clock::now() + std::chrono::hours(1);
      for (const Connection& c : connections) {
        const bool writes = c.state == State::kWriting;
        polled.push_back({c.socket.get(), static_cast<int16_t>(writes ? POLLOUT : POLLIN), 0});
        due = std::min(due, c.due);
      }
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - Clock::now());
      ::poll(polled.data(), polled.size(), std::max(0, static_cast<int>(left.count())));
      if (polled[0].revents != 0) return;
      size_t i = 2;
      for (Connection& connection : connections) {
        if (polled[i++].revents != 0) serve(connection);
        if (connection.due <= Clock::now()) expire(connection);
      }
      connections.remove_if([](const Connection& c) { return c.state == State::kClosed; });
      if (polled[1].revents != 0) accept_all();
    }
  }

  void accept_all() {
    // No more than there are slots, so that each gets a look before it can be closed again.
    for (size_t i = 0; i < kMaxConnections; ++i) {
      FileDescriptor socket(
          ::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      const bool no_more = errno == EMFILE || errno == ENFILE || errno == ENOBUFS;
      if (socket.get() < 0) {
        if (!no_more) return;
        // The process has no descriptors left: one of ours is given back, or else the next
        // call of poll() would come straight back here.
        if (connections.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
        if (!connections.empty()) connections.pop_front();
        return;
      }
      if (connections.size() == kMaxConnections) connections.pop_front();
      connections.push_back({std::move(socket), Clock::now() + kReadPatience});
      serve(connections.back());
    }
  }

  void serve(Connection& c) {
    switch (c.state) {
      case State::kReading: return read(c);
      case State::kWriting: return write(c);
      case State::kDraining: return drain(c);
      case State::kClosed: return;
    }
  }

  // Of bytes that came, how many; 0 if there are none now; closes at the end.
  static size_t receive(Connection& c, char* buffer, size_t size) {
    const ssize_t n = ::recv(c.socket.get(), buffer, size, 0);
    if (n > 0) return static_cast<size_t>(n);
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) c.state = State::kClosed;
    return 0;
  }

  void read(Connection& c) {
    char buffer[4096];
    while (c.state == State::kReading) {
      const size_t n = receive(c, buffer, sizeof(buffer));
      if (n == 0) return;
      c.text.append(buffer, n);
      try {
        if (const auto request = parse_request(c.text)) {
          respond(c, handle(*request), request->method != "HEAD");
        }
      } catch (const Refusal& refusal) {
        respond(c, handlers.refused(refusal.status, refusal.why), true);
      }
    }
  }

  HttpResponse handle(const HttpRequest& request) const {
    try {
      return handlers.handle(request);
    } catch (const std::exception& error) {
      return handlers.refused(kInternalError, error.what());
    }
  }

  static void respond(Connection& c, const HttpResponse& response, bool with_body) {
    c.text = to_text(response, with_body);
    c.state = State::kWriting;
    c.due = Clock::now() + kWritePatience;
    write(c);
  }

  static void write(Connection& c) {
    while (c.done < c.text.size()) {
      const ssize_t n =
          ::send(c.socket.get(), c.text.data() + c.done, c.text.size() - c.done, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && errno == EAGAIN) return;
      if (n < 0) {
        c.state = State::kClosed;
        return;
      }
      c.done += static_cast<size_t>(n);
    }
    ::shutdown(c.socket.get(), SHUT_WR);
    c.text = {};
    c.done = 0;
    c.state = State::kDraining;
    c.due = Clock::now() + kDrainPatience;
    drain(c);
  }

  static void drain(Connection& c) {
    char buffer[16384];
    while (c.state == State::kDraining) {
      const size_t n = receive(c, buffer, sizeof(buffer));
      if (n == 0) return;
      c.done += n;
      if (c.done > kMaxDrained) c.state = State::kClosed;
    }
  }

  void expire(Connection& c) const {
    // A connection that a browser opens ahead of need has asked nothing, and gets no answer.
    const bool asked = c.state == State::kReading && !c.text.empty();
    if (!asked) {
      c.state = State::kClosed;
      return;
    }
    respond(c, handlers.refused(kTimeout, "the request did not come in time"), true);
  }

  HttpHandlers handlers;
  const FileDescriptor listener, wake;
  int port = 0;
  std::list<Connection> connections;  // the thread's alone; oldest first
  std::thread thread;
};

HttpServer::HttpServer(int port) : impl_(std::make_unique<Impl>(port)) {}
HttpServer::~HttpServer() = default;

void HttpServer::start(HttpHandlers handlers) {
  impl_->handlers = std::move(handlers);
  impl_->thread = std::thread([this] { impl_->run(); });
}

int HttpServer::port() const { return impl_->port; }

}  // namespace tidemark::compare

// HTTP on a bare socket, for tests that send what no decent client would.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace tidemark::compare::testing {

// A connection to a port of this machine. Sending and reading give up after a while, so that a
// server that hangs fails a test instead of stopping it.
class Connection {
 public:
  static constexpr int kPatienceMs = 30'000;

  explicit Connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~Connection() {
    if (socket_ >= 0) ::close(socket_);
  }
  Connection(Connection&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), connected_(other.connected_) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  Connection& operator=(Connection&&) = delete;

  bool connected() const { return connected_; }

  // False: the other end has closed, or takes nothing for long.
  bool send(std::string_view text) const {
    while (!text.empty()) {
      pollfd ready{socket_, POLLOUT, 0};
      if (::poll(&ready, 1, kPatienceMs) <= 0) return false;
      const ssize_t n = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) return false;
      text.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }
  // Whether something comes, or the other end closes.
  bool hears_back(int most_ms) const {
    pollfd ready{socket_, POLLIN, 0};
    return ::poll(&ready, 1, most_ms) > 0;
  }

  // All until the other end closes.
  std::string read_all() const {
    std::string text;
    char buffer[16384];
    const auto due = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    while (std::chrono::steady_clock::now() < due) {
      pollfd ready{socket_, POLLIN, 0};
      if (::poll(&ready, 1, kPatienceMs) <= 0) break;
      const ssize_t n = ::recv(socket_, buffer, sizeof(buffer), 0);
      if (n <= 0) break;
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }

 private:
  int socket_;
  bool connected_ = false;
};

struct Answer {
  int status = 0;  // 0: there was none
  std::string head, body;

  explicit Answer(const std::string& text) {
    const size_t end = text.find("\r\n\r\n");
    if (!text.starts_with("HTTP/1.1 ") || end == std::string::npos) return;
    status = std::stoi(text.substr(9, 3));
    head = text.substr(0, end + 2);
    body = text.substr(end + 4);
  }
  // "" where there is none; names as the server writes them.
  std::string header(const std::string& name) const {
    const size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const size_t from = at + name.size() + 4;
    return head.substr(from, head.find("\r\n", from) - from);
  }
};

// Sends `request` as it stands.
inline Answer ask_raw(int port, const std::string& request) {
  const Connection connection(port);
  connection.send(request);
  return Answer(connection.read_all());
}

// A request as a browser sends it. `headers`: further lines, each with its end. Those that the
// request needs are added where they are not among them.
inline std::string request_of(int port, const std::string& method, const std::string& path,
                              std::string headers = "", const std::string& body = "") {
  const auto add = [&](const std::string& name, const std::string& value) {
    if (headers.find(name + ":") == std::string::npos) headers += name + ": " + value + "\r\n";
  };
  add("Host", "127.0.0.1:" + std::to_string(port));
  if (method == "POST") {
    add("Content-Type", "application/json");
    add("Content-Length", std::to_string(body.size()));
  }
  add("Connection", "close");
  return method + " " + path + " HTTP/1.1\r\n" + headers + "\r\n" + body;
}

inline Answer ask(int port, const std::string& method, const std::string& path,
                  const std::string& headers = "", const std::string& body = "") {
  return ask_raw(port, request_of(port, method, path, headers, body));
}

}  // namespace tidemark::compare::testing

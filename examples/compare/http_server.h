// An HTTP server for this machine only, on libmicrohttpd: one thread; no connection can block
// it, and everything that a client controls is bounded.
//
// libmicrohttpd bounds a request's head and idle time. This class bounds the number of
// connections by closing the oldest, so that the newest is always served. A body needs a
// length, at most kMaxBody. Each connection serves one request.
//
// Threads: handlers run on the server's thread and should take milliseconds.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace tidemark::compare {

enum HttpStatus {
  kOk = 200,
  kAccepted = 202,
  kNoContent = 204,
  kBadRequest = 400,
  kForbidden = 403,
  kNotFound = 404,
  kMethodNotAllowed = 405,
  kConflict = 409,
  kLengthRequired = 411,
  kBodyTooLarge = 413,
  kWrongType = 415,
  kInternalError = 500,
};

struct HttpRequest {
  std::string method, path, query;             // the path is decoded, the query is as sent
  std::map<std::string, std::string> headers;  // names in lower case; repeated: "a, b"
  std::string body;

  // The header's value; "" if it is absent.
  const std::string& header(const std::string& name) const;
};

struct HttpResponse {
  HttpStatus status = kOk;
  std::string type;  // of the body
  std::string body;
};

// If a handler throws, the response is kInternalError. `refused` formats, in the program's own
// format, why a request did not reach the handler.
struct HttpHandlers {
  std::function<HttpResponse(const HttpRequest&)> handle;
  std::function<HttpResponse(HttpStatus, const std::string& why)> refused;
};

class HttpServer {
 public:
  static constexpr size_t kMaxConnections = 64;
  // Per connection, for the heads of its request and response, including cookies from other
  // programs on this machine.
  static constexpr size_t kMaxHead = 32 << 10;
  static constexpr size_t kMaxBody = 4 << 10;
  static constexpr unsigned kIdleSeconds = 2;

  // Listens on 127.0.0.1 and answers immediately; `port` 0: any free port. Throws
  // std::system_error if the port is not available.
  HttpServer(int port, HttpHandlers handlers);
  // Closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::compare

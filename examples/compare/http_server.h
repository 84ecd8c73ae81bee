// HTTP for this machine alone, by libmicrohttpd: one thread, no connection can hold it, and a
// bound on everything that a client decides.
//
// libmicrohttpd bounds the head of a request and idle time; here the number of connections is
// bounded, so that the newest is always served: where there are too many, the oldest is closed.
// Bodies need a length, of at most kMaxBody. Each connection serves one request.
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

  // "" where there is none.
  const std::string& header(const std::string& name) const;
};

struct HttpResponse {
  HttpStatus status = kOk;
  std::string type;  // of the body
  std::string body;
};

// A handler that throws gives kInternalError. `refused` says in the program's own format why a
// request did not reach it.
struct HttpHandlers {
  std::function<HttpResponse(const HttpRequest&)> handle;
  std::function<HttpResponse(HttpStatus, const std::string& why)> refused;
};

class HttpServer {
 public:
  static constexpr size_t kMaxConnections = 64;
  // Of a connection, for the head of its request and of the response; cookies of other programs
  // on this machine come along.
  static constexpr size_t kMaxHead = 32 << 10;
  static constexpr size_t kMaxBody = 4 << 10;
  static constexpr unsigned kIdleSeconds = 2;

  // Listens on 127.0.0.1 and answers from now on; `port` 0: any that is free. Throws
  // std::system_error if the port cannot be had.
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

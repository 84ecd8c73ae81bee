// A small HTTP/1.1 server for this machine alone: one thread, one request per connection, and a
// bound on everything that a client decides.
//
//             +---- accept ----> reading ----> handler ----> writing ----> draining ---> closed
//             |                     |  bad, too long, too late  ^             |
//      listening socket             +---------------------------+         the client closes,
//                                                                         or patience ends
//
// A connection costs a slot and its buffers, never a thread, so clients that say nothing, stop
// midway or do not read cannot hold up others. When all slots are taken, the oldest connection
// is closed for the new one. Memory: kMaxConnections * (kMaxHead + kMaxBody + the response).
//
// Not supported, and refused or ignored: chunked requests (411), ranges, compression,
// keep-alive, pipelining, anything but HTTP/1.0 and 1.1.
#pragma once

#include <chrono>
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
  kTimeout = 408,
  kConflict = 409,
  kLengthRequired = 411,
  kBodyTooLarge = 413,
  kWrongType = 415,
  kHeadTooLarge = 431,
  kInternalError = 500,
};

struct HttpRequest {
  std::string method, path, query;             // as sent: nothing is decoded
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

// A handler that throws gives kInternalError. It runs on the server's thread and should take
// milliseconds. `refused` says in the program's own format why a request did not reach it.
struct HttpHandlers {
  std::function<HttpResponse(const HttpRequest&)> handle;
  std::function<HttpResponse(HttpStatus, const std::string& why)> refused;
};

class HttpServer {
 public:
  static constexpr size_t kMaxConnections = 64;
  static constexpr size_t kMaxHead = 16 << 10;  // request line and headers; cookies of other
                                                // programs on this machine come along
  static constexpr size_t kMaxHeaders = 100;
  static constexpr size_t kMaxBody = 4 << 10;
  static constexpr size_t kMaxDrained = 1 << 20;  // thrown away after a refusal
  // From the connection to the whole request; for the response; and until the client has
  // closed.
  static constexpr std::chrono::milliseconds kReadPatience{2000}, kWritePatience{10000},
      kDrainPatience{1000};

  // Listens on 127.0.0.1; `port` 0: any that is free. Throws std::system_error if the port
  // cannot be had.
  explicit HttpServer(int port);
  // Answers from now on. Once.
  void start(HttpHandlers handlers);
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

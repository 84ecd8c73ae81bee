// Serves the page for the browser, on this machine only.
//
//   GET  /                     the page, and its parts under their names
//   GET  /api/snapshot?after=N what Snapshot holds; 204 if there is none newer than N
//   GET  /api/lane/ID          blocks and decisions of a lane's last step
//   POST /api/commands         {"do": "switch", "lane": 2, "policy": "delta", "filter": "lru"},
//                              add (policy, filter, budget), remove (lane), budget (lane or
//                              none for all, budget), pause, resume; gives its number
//
// Listens on 127.0.0.1. Other web pages must not be able to send commands: the Host header has
// to name this machine (against DNS rebinding), and a POST has to come from the same origin.
// Bad requests get 4xx with {"error": "..."}; http_server.h describes the limits.
//
// Threads: its own. The constructor returns once the server listens; the destructor joins them.
#pragma once

#include <memory>
#include <string>

#include "examples/compare/engine.h"

namespace tidemark::compare {

class PageServer {
 public:
  // `port` 0: any free port. Throws UsageError if the port is in use or the page's files are
  // missing. `comparison` must outlive the server.
  PageServer(Comparison& comparison, int port);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const;
  std::string url() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidemark::compare

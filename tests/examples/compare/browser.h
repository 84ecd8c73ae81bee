// Chromium without a screen, asked through the DevTools protocol over a pair of pipes: a page
// can be used and looked at as a person would, without a network port and without sleeping.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tidemark::compare::testing {

// "" if there is none.
inline std::string find_browser() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      const std::filesystem::path program = std::filesystem::path(folder) / name;
      std::error_code error;
      if (std::filesystem::exists(program, error)) return program.string();
    }
  }
  return "";
}

// Throws std::runtime_error if the browser does not answer, or a script throws.
class Browser {
 public:
  using Json = nlohmann::json;

  explicit Browser(const std::string& program) {
    std::string pattern = (std::filesystem::temp_directory_path() / "browser_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder for a profile");
    folder_ = pattern;
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0) {
      throw std::runtime_error("no pipes");
    }
    write_ = to[1];
    read_ = from[0];
    const std::vector<std::string> arguments{program,
                                             "--headless",
                                             "--no-sandbox",
                                             "--disable-gpu",
                                             "--disable-dev-shm-usage",
                                             "--no-first-run",
                                             "--hide-scrollbars",
                                             "--disable-background-networking",
                                             "--disable-component-update",
                                             "--disable-sync",
                                             "--remote-debugging-pipe",
                                             "--user-data-dir=" + folder_.string()};
    std::vector<char*> argv;
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      // Its ends are to be 3 and 4, which may be taken by one another: by way of others.
      const int in = fcntl(to[0], F_DUPFD, 10), out = fcntl(from[1], F_DUPFD, 10);
      dup2(in, 3);
      dup2(out, 4);
      const int log = open((folder_ / "log").c_str(), O_WRONLY | O_CREAT, 0600);
      dup2(log, STDERR_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    const Json target = call("Target.createTarget", {{"url", "about:blank"}});
    session_ =
        call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}})
            .at("sessionId");
  }
  ~Browser() {
    close(write_);  // which ends it
    close(read_);
    if (pid_ > 0) {
      kill(pid_, SIGTERM);
      waitpid(pid_, nullptr, 0);
    }
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  void open_page(const std::string& url, int width, int height) {
    resize(width, height);
    call("Page.navigate", {{"url", url}});
  }
  void resize(int width, int height) {
    call("Emulation.setDeviceMetricsOverride",
         {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}});
  }
  // What a JavaScript expression gives; of a promise, what it comes to.
  Json evaluate(const std::string& expression) {
    const Json answer =
        call("Runtime.evaluate",
             {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
    if (answer.contains("exceptionDetails")) {
      throw std::runtime_error(expression + ": " + answer.at("exceptionDetails").dump());
    }
    const Json& result = answer.at("result");
    return result.contains("value") ? result.at("value") : Json(nullptr);
  }
  // Until the expression is true. False: it never was, for long.
  bool wait_for(const std::string& expression) {
    const auto due = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < due) {
      try {
        if (evaluate("new Promise((done) => setTimeout(() => done(Boolean(" + expression +
                     ")), 50))") == true) {
          return true;
        }
      } catch (const std::runtime_error&) {
        // The document that was asked is gone, or its scripts have not run yet.
      }
    }
    return false;
  }

 private:
  static constexpr std::chrono::seconds kPatience{90};

  Json call(const std::string& method, const Json& parameters) {
    const int id = ++last_id_;
    Json message{{"id", id}, {"method", method}, {"params", parameters}};
    if (!session_.empty()) message["sessionId"] = session_;
    std::string text = message.dump();
    text.push_back('\0');
    if (write(write_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
      throw std::runtime_error("the browser does not listen");
    }
    while (true) {
      const Json answer = Json::parse(next_message());
      if (answer.value("id", 0) != id) continue;
      if (answer.contains("error")) throw std::runtime_error(answer.at("error").dump());
      return answer.at("result");
    }
  }

  std::string next_message() {
    size_t end = 0;
    while ((end = buffer_.find('\0')) == std::string::npos) {
      pollfd ready{read_, POLLIN, 0};
      const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(kPatience);
      char bytes[65536];
      const ssize_t n = poll(&ready, 1, static_cast<int>(most.count())) > 0
                            ? read(read_, bytes, sizeof(bytes))
                            : 0;
      if (n <= 0) throw std::runtime_error("the browser does not answer");
      buffer_.append(bytes, static_cast<size_t>(n));
    }
    std::string message = buffer_.substr(0, end);
    buffer_.erase(0, end + 1);
    return message;
  }

  std::filesystem::path folder_;
  pid_t pid_ = -1;
  int write_ = -1, read_ = -1;
  std::string buffer_, session_;
  int last_id_ = 0;
};

}  // namespace tidemark::compare::testing

// A program that runs while the test reads its standard error and sends it signals.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace tidemark::testing {

class RunningProgram {
 public:
  // `arguments` are separated by spaces. What the program writes to standard output is lost.
  RunningProgram(const std::string& program, const std::string& arguments) {
    std::vector<std::string> words{program};
    std::istringstream split(arguments);
    for (std::string word; split >> word;) words.push_back(word);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    child_ = fork();
    if (child_ == 0) {
      dup2(ends[1], STDERR_FILENO);
      close(ends[0]);
      close(ends[1]);
      if (!std::freopen("/dev/null", "w", stdout)) _exit(1);
      execv(program.c_str(), argv.data());
      _exit(1);
    }
    close(ends[1]);
    lines_ = fdopen(ends[0], "r");
  }
  // Waits for the program to end.
  ~RunningProgram() { wait(); }
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  // The next line of standard error; empty at the end.
  std::string line() {
    char text[256];
    return std::fgets(text, sizeof(text), lines_) ? text : "";
  }
  void send(int signal) const { kill(child_, signal); }

  // Reads all lines that are left. Returns the status that waitpid() gives.
  int wait() {
    if (!lines_) return status_;
    while (!line().empty()) {
    }
    std::fclose(lines_);
    lines_ = nullptr;
    waitpid(child_, &status_, 0);
    return status_;
  }

 private:
  pid_t child_ = -1;
  std::FILE* lines_ = nullptr;
  int status_ = 0;
};

}  // namespace tidemark::testing

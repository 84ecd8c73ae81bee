#include "examples/compare/terminal_face.h"

#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <clocale>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "runtime/core/errors.h"

namespace tidemark::compare {
namespace {

constexpr int kFrameMs = 100;
constexpr char kCtrlC = 3, kDelete = 127;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(STDOUT_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

// Switches to the alternate screen and to unbuffered keys during its lifetime.
class Screen {
 public:
  Screen() : keys_(tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (keys_) {
      termios raw = before_;
      // Ctrl-C is read as a key: the terminal is restored before the program ends.
      raw.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG | IEXTEN);
      raw.c_iflag &= ~static_cast<tcflag_t>(IXON | ICRNL);
      raw.c_cc[VMIN] = 0;
      raw.c_cc[VTIME] = 0;
      tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    }
    write_all("\x1b[?1049h\x1b[?25l\x1b[2J");
  }
  ~Screen() {
    write_all("\x1b[0m\x1b[?25h\x1b[?1049l");
    if (keys_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  bool has_keys() const { return keys_; }

  // Waits for keys, at most `most` milliseconds. Empty: no key, or end of input.
  std::string read_keys(int most) const {
    pollfd wait{STDIN_FILENO, POLLIN, 0};
    if (!keys_) {
      poll(nullptr, 0, most);
      return "";
    }
    if (poll(&wait, 1, most) <= 0) return "";
    char keys[64];
    const ssize_t n = read(STDIN_FILENO, keys, sizeof(keys));
    return n > 0 ? std::string(keys, static_cast<size_t>(n)) : "";
  }

 private:
  termios before_{};
  const bool keys_;
};

struct Size {
  int width = 80, height = 24;
  bool operator==(const Size&) const = default;
};

Size window_size() {
  winsize window{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_col == 0) return {};
  return {window.ws_col, window.ws_row};
}

// Splits terminal input into keys: an arrow is three characters.
std::vector<int> split_keys(const std::string& text) {
  std::vector<int> keys;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\x1b' && i + 2 < text.size() && (text[i + 1] == '[' || text[i + 1] == 'O')) {
      if (text[i + 2] == 'A') keys.push_back(Keys::kUp);
      if (text[i + 2] == 'B') keys.push_back(Keys::kDown);
      i += 2;
    } else if (c == '\x1b') {
      keys.push_back(Keys::kEscape);
    } else if (c == '\r' || c == '\n') {
      keys.push_back(Keys::kEnter);
    } else if (c == kDelete || c == '\b') {
      keys.push_back(Keys::kBackspace);
    } else {
      keys.push_back(static_cast<unsigned char>(c));
    }
  }
  return keys;
}

}  // namespace

bool Keys::press(int key) {
  if (key == kCtrlC) return false;
  if (asking_ != Ask::kNothing) {
    if (key == kEscape) {
      ask(Ask::kNothing, "");
    } else if (key == kEnter) {
      answer();
    } else if (key == kBackspace) {
      if (!state_.answer.empty()) state_.answer.pop_back();
    } else if (key >= ' ' && key < kDelete) {
      state_.answer += static_cast<char>(key);
    }
    return true;
  }
  state_.message.clear();
  const std::string lane = "lane " + std::to_string(state_.selected);
  switch (key) {
    case 'q': return false;
    case kUp: select_next(-1); break;
    case kDown: select_next(1); break;
    case 's': ask(Ask::kSwitch, lane + " to (POLICY[:FILTER][@BUDGET]):"); break;
    case 'a': ask(Ask::kAdd, "add (POLICY[:FILTER][@BUDGET]):"); break;
    case 'b': ask(Ask::kBudget, "budget of " + lane + " (300MiB, 40%):"); break;
    case 'B': ask(Ask::kAllBudgets, "budget of all lanes (300MiB, 40%):"); break;
    case 'd':
      submit({.what = Command::kRemove, .lane = state_.selected, .spec = {}, .budget = {}});
      break;
    case ' ':
    case 'p':
      submit({.what = comparison_.snapshot()->paused ? Command::kResume : Command::kPause,
              .spec = {},
              .budget = {}});
      break;
    default:
      if (key >= '1' && key <= '9') state_.selected = key - '0';
  }
  return true;
}

void Keys::ask(Ask what, const std::string& prompt) {
  asking_ = what;
  state_.prompt = prompt;
  state_.answer.clear();
}

void Keys::answer() {
  const Ask asked = asking_;
  const std::string text = state_.answer;
  ask(Ask::kNothing, "");
  if (text.empty()) return;
  try {
    Command command;
    command.lane = asked == Ask::kSwitch || asked == Ask::kBudget ? state_.selected : 0;
    if (asked == Ask::kSwitch || asked == Ask::kAdd) {
      command.what = asked == Ask::kAdd ? Command::kAdd : Command::kSwitch;
      command.spec = parse_lane(text);
    } else {
      command.what = Command::kBudget;
      command.budget = parse_budget(text);
    }
    submit(command);
  } catch (const UsageError& error) {
    state_.message = error.what();
  }
}

void Keys::submit(const Command& command) {
  try {
    comparison_.submit(command);
  } catch (const UsageError& error) {
    state_.message = error.what();
  } catch (const InfeasibleBudget& error) {
    state_.message = error.what();
  }
}

void Keys::select_next(int by) {
  const auto now = comparison_.snapshot();
  for (size_t i = 0; i < now->lanes.size(); ++i) {
    if (now->lanes[i]->id != state_.selected) continue;
    const auto next = static_cast<int64_t>(i) + by;
    if (next >= 0 && next < static_cast<int64_t>(now->lanes.size())) {
      state_.selected = now->lanes[static_cast<size_t>(next)]->id;
    }
    return;
  }
  if (!now->lanes.empty()) state_.selected = now->lanes.front()->id;
}

bool run_terminal(Comparison& comparison, const std::function<bool()>& interrupted) {
  std::setlocale(LC_CTYPE, "");
  const bool colours = std::getenv("NO_COLOR") == nullptr;
  Keys keys(comparison);
  keys.state().unicode = std::strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
  const Screen screen;
  Size size;
  uint64_t drawn = 0;
  bool stale = true;
  while (true) {
    const Size now_size = window_size();
    const auto now = comparison.snapshot();
    if (stale || !(now_size == size) || now->number != drawn) {
      if (!(now_size == size)) write_all("\x1b[2J");
      size = now_size;
      drawn = now->number;
      write_all(draw_view(*now, keys.state(), size.width, size.height).ansi(colours));
    }
    stale = false;
    if (now->steps > 0 && now->finished) return false;
    for (const int key : split_keys(screen.read_keys(kFrameMs))) {
      stale = true;
      if (!keys.press(key)) return true;
    }
    if (interrupted()) return true;
  }
}

}  // namespace tidemark::compare

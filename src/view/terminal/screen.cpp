// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/terminal/screen.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <string_view>

#include "core/error.h"
#include "io/print_result.h"

namespace lockstep {

namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP};
// The other screen, no cursor, no wrapping of lines; and back.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l\033[?7l\033[2J\033[H";
constexpr std::string_view kLeave = "\033[?7h\033[?25h\033[?1049l";

std::array<int, 2> pipe_ends{-1, -1};
std::array<struct sigaction, kSignals.size()> old_actions;

void note_signal(int signal) {
  const int error = errno;
  const char byte = static_cast<char>(signal);
  [[maybe_unused]] const ssize_t written = ::write(pipe_ends[1], &byte, 1);  // full: one is waiting already
  errno = error;
}

bool write_all(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {  // the terminal is slow, and shared with a program that set this
      pollfd out{STDOUT_FILENO, POLLOUT, 0};
      if (::poll(&out, 1, 1000) <= 0) return false;
      continue;
    }
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Screen::Screen() {
  LOCKSTEP_CHECK(pipe_ends[0] < 0, "two screens");
  LOCKSTEP_REQUIRE(::pipe2(pipe_ends.data(), O_CLOEXEC | O_NONBLOCK) == 0, ErrorKind::output,
                   "the terminal cannot be taken: no pipe (error {})", errno);
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &old_actions[i]);
    const bool ignored = old_actions[i].sa_handler == SIG_IGN;  // nohup, or a shell without job control
    if (!ignored) sigaction(kSignals[i], &action, nullptr);
  }
  std::fflush(stdout);
  keys_ = isatty(STDIN_FILENO) == 1 && tcgetattr(STDIN_FILENO, &before_) == 0;
  enter();
}

Screen::~Screen() {
  leave();
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &old_actions[i], nullptr);
  for (int& end : pipe_ends) {
    ::close(end);
    end = -1;
  }
}

void Screen::enter() {
  if (keys_) {
    termios raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  }
  write_all(kEnter);
}

void Screen::leave() noexcept {
  write_all(kLeave);
  if (keys_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);  // what was typed is not for the shell
}

/// The shell has its terminal back until it continues the program. Without a shell that could, the system
/// does not stop it.
void Screen::stop_and_continue() {
  struct sigaction ours {
  }, standard{};
  standard.sa_handler = SIG_DFL;
  sigemptyset(&standard.sa_mask);
  leave();
  sigaction(SIGTSTP, &standard, &ours);
  ::raise(SIGTSTP);
  sigaction(SIGTSTP, &ours, nullptr);
  enter();
}

void Screen::draw(const std::vector<std::string>& lines) {
  // What is below is erased first: after a line that ends in the last column, erasing would take its end.
  std::string text = fmt::format("\033[{};1H\033[J\033[H", lines.size() + 1);
  for (std::size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\r\n\033[2K" : "\033[2K") + lines[i];
  require_printed(stdout, write_all(text));
}

Screen::Event Screen::wait(double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    const double left = std::chrono::duration<double>(until - Clock::now()).count();
    if (left <= 0) return Event::timeout;
    std::array<pollfd, 2> ready{{{pipe_ends[0], POLLIN, 0}, {keys_ ? STDIN_FILENO : -1, POLLIN, 0}}};
    if (::poll(ready.data(), ready.size(), static_cast<int>(left * 1000) + 1) < 0 && errno != EINTR)
      return Event::timeout;
    char byte = 0;
    bool resized = false;
    while (::read(pipe_ends[0], &byte, 1) == 1) {
      if (byte == SIGTSTP) stop_and_continue();
      resized = resized || byte == SIGWINCH || byte == SIGTSTP;
      if (byte == SIGWINCH || byte == SIGTSTP) continue;
      if (byte != SIGINT) signal_ = byte;
      return Event::quit;
    }
    if ((ready[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0) {
      const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
      if (count == 1 && (byte == 'q' || byte == 'Q' || byte == 3)) return Event::quit;
      if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) return Event::quit;  // it is gone
    }
    if (resized) return Event::resized;
  }
}

}  // namespace lockstep

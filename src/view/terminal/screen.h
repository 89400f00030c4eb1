// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The whole terminal as a picture that is redrawn: `lockstep top` and `lockstep plot --follow`. One per
// process, on the main thread. The terminal is as before once it is destroyed, also after Ctrl-C, TERM, HUP
// and QUIT, while the program is stopped (Ctrl-Z), and after an exception.
#pragma once

#include <termios.h>

#include <string>
#include <vector>

namespace lockstep {

class Screen {
 public:
  /// quit: q, Q, Ctrl-C or a signal that ends programs. resized: also after Ctrl-Z and fg.
  enum class Event { timeout, quit, resized };

  /// Standard output is a terminal that can be redrawn (TextStyle::redraws). Keys come from standard input if
  /// that is one too.
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Replaces the picture; lines that fit into the terminal. Throws Error(output).
  void draw(const std::vector<std::string>& lines);
  Event wait(double seconds);
  /// The signal of the event quit, if it is to end the program like any other; else 0.
  int signal() const { return signal_; }

 private:
  void enter();
  void leave() noexcept;
  void stop_and_continue();

  bool keys_ = false;
  termios before_{};
  int signal_ = 0;
};

}  // namespace lockstep

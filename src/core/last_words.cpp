// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/last_words.h"

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "core/shown_text.h"

namespace lockstep {

namespace {

struct Registered {
  std::mutex mutex;
  LastWordsFunction function;
};

/// Never destroyed: a thread may speak while the process ends.
Registered& registered() {
  static auto* const instance = new Registered;
  return *instance;
}

/// What the speaking thread and the waiting one share. The first may outlive the second.
struct Speech {
  std::string message;
  LastWordsFunction function;
  std::mutex mutex;
  std::condition_variable is_over;
  bool over = false;

  void give(int exit_code) {
    std::fputs(message.c_str(), stderr);
    if (function) try {
        function(message, exit_code);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "warning: the run has no note of its end: %s\n",
                     shown_message(error.what()).c_str());
      }
    const std::lock_guard lock(mutex);
    over = true;
    is_over.notify_all();
  }
};

}  // namespace

void set_last_words(LastWordsFunction function) {
  const std::lock_guard lock(registered().mutex);
  registered().function = std::move(function);
}

void say_last_words(const std::string& message, int exit_code, double seconds) noexcept {
  try {
    const auto speech = std::make_shared<Speech>();
    speech->message = message;
    {
      const std::lock_guard lock(registered().mutex);
      speech->function = registered().function;
    }
    std::thread([speech, exit_code] { speech->give(exit_code); }).detach();
    std::unique_lock lock(speech->mutex);
    speech->is_over.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return speech->over; });
  } catch (const std::exception&) {  // no thread or no memory: then without a limit
    std::fputs(message.c_str(), stderr);
  }
}

}  // namespace lockstep

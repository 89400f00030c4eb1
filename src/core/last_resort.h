// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a program around decides when its process has to end, as nothing else is left.
#pragma once

#include <functional>
#include <string>

namespace lockstep {

/// Gets the exit code, and what happened; empty: it was printed already. If it returns, the process ends.
using LastResort = std::function<void(int code, const std::string& message)>;

/// Those of the process, for what knows no communicator. Each lives as long as its environment.
class LastResortScope {
 public:
  explicit LastResortScope(LastResort resort);
  ~LastResortScope();
  LastResortScope(const LastResortScope&) = delete;
  LastResortScope& operator=(const LastResortScope&) = delete;

 private:
  LastResort resort_;
};

/// Calls them, the newest first. The caller ends the process. From any thread.
void ask_last_resorts(int code, const std::string& message);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/chosen_algorithms_cuda.h"

#include <map>
#include <mutex>

namespace lockstep::cuda {

namespace {

struct Chosen {
  std::mutex mutex;
  std::map<std::string, std::string> by_operation;
};
Chosen& chosen() {
  static auto* one = new Chosen;  // outlives static objects
  return *one;
}

}  // namespace

void note_algorithm(const std::string& operation, const std::string& algorithm) {
  const std::lock_guard lock(chosen().mutex);
  chosen().by_operation[operation] = algorithm;
}

void forget_algorithms() {
  const std::lock_guard lock(chosen().mutex);
  chosen().by_operation.clear();
}

std::string chosen_algorithms() {
  const std::lock_guard lock(chosen().mutex);
  std::string text;
  for (const auto& [operation, algorithm] : chosen().by_operation)
    text += operation + ": " + algorithm + "\n";
  return text;
}

}  // namespace lockstep::cuda

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/chosen_algorithms_cuda.h"

#include <map>
#include <mutex>
#include <set>

namespace lockstep::cuda {

namespace {

struct Chosen {
  std::mutex mutex;
  std::map<std::string, std::string> by_operation;
  std::set<std::string> wrong, inexact;
};
Chosen& chosen() {
  static auto* one = new Chosen;  // outlives static objects
  return *one;
}

std::string text_of(const std::set<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace

void note_algorithm(const std::string& operation, const std::string& algorithm) {
  const std::lock_guard lock(chosen().mutex);
  chosen().by_operation[operation] = algorithm;
}

void note_wrong_algorithm(const std::string& line) {
  const std::lock_guard lock(chosen().mutex);
  chosen().wrong.insert(line);
}

std::string wrong_algorithms() {
  const std::lock_guard lock(chosen().mutex);
  return text_of(chosen().wrong);
}

void note_inexact_algorithm(const std::string& line) {
  const std::lock_guard lock(chosen().mutex);
  chosen().inexact.insert(line);
}

std::string inexact_algorithms() {
  const std::lock_guard lock(chosen().mutex);
  return text_of(chosen().inexact);
}

void forget_algorithms() {
  const std::lock_guard lock(chosen().mutex);
  chosen().by_operation.clear();
  chosen().wrong.clear();
  chosen().inexact.clear();
}

std::string chosen_algorithms() {
  const std::lock_guard lock(chosen().mutex);
  std::string text;
  for (const auto& [operation, algorithm] : chosen().by_operation)
    text += operation + ": " + algorithm + "\n";
  return text;
}

}  // namespace lockstep::cuda

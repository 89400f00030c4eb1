// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/measured_algorithms_cuda.h"

#include <map>
#include <mutex>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "kernels/chosen_algorithms_cuda.h"

namespace lockstep::cuda {

namespace {

struct Measured {
  std::mutex mutex;
  std::map<std::string, std::string> by_operation;
  bool measures = false;
};
Measured& measured() {
  static auto* one = new Measured;  // outlives static objects
  return *one;
}

// A line of the table: one of these, then the rest. On disk: do not change.
constexpr std::string_view kUse = "use ", kWrong = "wrong ", kInexact = "inexact ", kArrow = " => ";

void add_lines(std::string& table, std::string_view kind, const std::string& lines) {
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) table += std::string(kind) + line + "\n";
}

void set_measures(bool on) {
  const std::lock_guard lock(measured().mutex);
  measured().measures = on;
}

}  // namespace

bool FastestAlgorithm::offer(const std::string& algorithm, FunctionRef<double(double best)> seconds) {
  if (!timed_.insert(algorithm).second) return false;
  const double taken = seconds(best_);
  if (taken < best_) {
    best_ = taken;
    name_ = algorithm;
  }
  return timed_.size() == kMost;
}

std::string measured_algorithm(const std::string& operation, FunctionRef<void(FastestAlgorithm&)> offer_all) {
  {
    const std::lock_guard lock(measured().mutex);
    const auto found = measured().by_operation.find(operation);
    if (found != measured().by_operation.end()) return found->second;
    if (!measured().measures) return "";
  }
  FastestAlgorithm fastest;
  offer_all(fastest);
  if (fastest.name().empty()) return "";
  const std::lock_guard lock(measured().mutex);
  return measured().by_operation.emplace(operation, fastest.name()).first->second;
}

void throw_not_there(const std::string& operation, const std::string& algorithm, const std::string& reason) {
  throw Error(ErrorKind::device,
              fmt::format("the measured algorithm for {} cannot be used here: {}{}{}", operation, algorithm,
                          reason.empty() ? "" : ": ", reason),
              {}, "Remove configs/gpu_choices.txt of the run to measure anew; bits may change.");
}

void use_measured_algorithms(const std::string& table) {
  std::map<std::string, std::string> by_operation;
  std::istringstream stream(table);
  for (std::string line; std::getline(stream, line);) {
    const std::size_t arrow = line.find(kArrow);
    if (line.starts_with(kUse) && arrow != std::string::npos)
      by_operation[line.substr(kUse.size(), arrow - kUse.size())] = line.substr(arrow + kArrow.size());
    else if (line.starts_with(kWrong))
      note_wrong_algorithm(line.substr(kWrong.size()));
    else if (line.starts_with(kInexact))
      note_inexact_algorithm(line.substr(kInexact.size()));
    else
      throw Error(ErrorKind::config, fmt::format("the table of measured algorithms has the line '{}'", line));
  }
  const std::lock_guard lock(measured().mutex);
  measured().by_operation = std::move(by_operation);
}

std::string measure_algorithms(FunctionRef<void()> prepare) {
  use_measured_algorithms("");
  set_measures(true);
  try {
    prepare();
  } catch (...) {
    set_measures(false);
    throw;
  }
  set_measures(false);
  std::string table;
  {
    const std::lock_guard lock(measured().mutex);
    for (const auto& [operation, algorithm] : measured().by_operation)
      table += std::string(kUse) + operation + std::string(kArrow) + algorithm + "\n";
  }
  add_lines(table, kWrong, wrong_algorithms());
  add_lines(table, kInexact, inexact_algorithms());
  return table;
}

}  // namespace lockstep::cuda

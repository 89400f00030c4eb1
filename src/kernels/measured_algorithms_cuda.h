// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of algorithms that were measured (private to this room). An operation has the algorithm that the
// table names, whoever measured it, else the first right one of the library's list. An algorithm is named by
// a text that says all about it, and is looked up in the library's list by this text.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "core/function_ref.h"

namespace lockstep::cuda {

/// The fastest of some algorithms for one operation. The times of two are compared on the same GPU in the
/// same minute, so noise chooses only between algorithms that are equally good.
class FastestAlgorithm {
 public:
  /// Candidates that are timed: the libraries' lists have the best ones first.
  static constexpr std::size_t kMost = 8;

  /// Times an algorithm that is right. `seconds(best)` may stop early and return a time so far if that is
  /// much longer than `best`. One that was offered before is left out: cuDNN's two lists have some in common.
  /// Returns true if there should be no more.
  bool offer(const std::string& algorithm, FunctionRef<double(double best)> seconds);
  /// Empty: none was offered.
  const std::string& name() const { return name_; }

 private:
  std::string name_;
  double best_ = 1e30;
  std::set<std::string> timed_;
};

// All functions are thread-safe.

/// The table's algorithm for an operation; empty: the library's list chooses. Within measure_algorithms(), an
/// operation that the table does not have gets the fastest that `offer_all` offers. The operation's name says
/// all about it.
std::string measured_algorithm(const std::string& operation, FunctionRef<void(FastestAlgorithm&)> offer_all);

/// Throws Error(device): the library has the table's algorithm for the operation no more, or it is not right.
[[noreturn]] void throw_not_there(const std::string& operation, const std::string& algorithm,
                                  const std::string& reason = "");

/// See Backend.
void use_measured_algorithms(const std::string& table);
std::string measure_algorithms(FunctionRef<void()> prepare);

}  // namespace lockstep::cuda

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All mistakes of a user's input in one error. A check that can go on after a mistake runs its parts through
// an ErrorCollector, which throws what it has collected at the end. Checks nest: the group that an inner
// check throws becomes part of the outer one's.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace lockstep {

/// Several errors, all of kind config or usage. what() has all messages, one below the other, and their
/// number.
class ErrorGroup : public Error {
 public:
  /// `errors` is not empty. `total` counts also errors that are not among them.
  explicit ErrorGroup(std::vector<Error> errors, std::size_t total);
  const std::vector<Error>& errors() const { return errors_; }
  std::size_t total() const { return total_; }

 private:
  std::vector<Error> errors_;
  std::size_t total_;
};

/// Thrown where a value is used whose mistake a collector has already. A collector ignores it, so that a
/// mistake has no consequences in the list.
class ReportedMistake : public Error {
 public:
  explicit ReportedMistake(std::string what);
};

class ErrorCollector {
 public:
  /// More errors than this are counted only.
  static constexpr std::size_t kMostErrors = 50;

  void add(const Error& error);
  /// True if add() would only count the error, so that its message need not be composed.
  bool is_full() const { return errors_.size() >= kMostErrors; }
  void count_only() { ++total_; }
  /// Runs `body` and collects its errors of kind config and usage; others pass through. Returns whether it
  /// ended without one.
  template <typename Body>
  bool attempt(Body&& body) {
    try {
      body();
      return true;
    } catch (const ReportedMistake&) {
      return false;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::config && error.kind() != ErrorKind::usage) throw;
      add(error);
      return false;
    }
  }
  bool empty() const { return total_ == 0; }
  /// Throws the only error as it is, or several as an ErrorGroup in the order in which they were added.
  void throw_if_any() const;
  const std::vector<Error>& errors() const { return errors_; }
  std::size_t total() const { return total_; }

 private:
  std::vector<Error> errors_;
  std::size_t total_ = 0;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How many threads read a set, found from how long batches wait: one more where they wait, and one less again
// if that did not help. Pure arithmetic. It decides nothing but speed.
#pragma once

namespace lockstep {

class ThreadChoice {
 public:
  /// Waits up to this share of the time are no reason for another thread.
  static constexpr double kMostWaiting = 0.01;
  /// A thread helps if what is left of the waiting is at most this share of it.
  static constexpr double kHelps = 0.9;
  /// Windows without a change after a thread that did not help.
  static constexpr int kRest = 60;

  explicit ThreadChoice(int most) : most_(most) {}
  int threads() const { return threads_; }
  /// A window has ended, in which batches have waited for this share of the time.
  void window(double waiting) {
    if (tries_ && waiting > kHelps * before_) {
      --threads_;
      rest_ = kRest;
    }
    tries_ = false;
    if (rest_ > 0) {
      --rest_;
      return;
    }
    if (waiting <= kMostWaiting || threads_ >= most_) return;
    ++threads_;
    tries_ = true;
    before_ = waiting;
  }

 private:
  int most_, threads_ = 1, rest_ = 0;
  bool tries_ = false;  ///< the last window began with one thread more
  double before_ = 0;   ///< waiting without it
};

}  // namespace lockstep

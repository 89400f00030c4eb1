// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Values that each rank sends with the one exchange of a step, and that every rank can read after it: control
// flags, times. They travel with the allgather that the loss needs anyway, so they cost no message.
//
// The loop's thread owns it. All ranks declare the same slices in the same order.
#pragma once

#include <span>

namespace lockstep {

class SmallSum;

class RankValues {
 public:
  /// Values that belong together. The same on all ranks.
  struct Slice {
    int first = 0, count = 0;
  };

  /// `exchange` outlives it; `ranks` take part in it.
  RankValues(SmallSum& exchange, int ranks) : exchange_(exchange), ranks_(ranks) {}

  /// `count` doubles of each rank. Hooks call it in begin.
  Slice declare(int count);
  /// Allocates the values, once, after the last declare(). All ranks.
  void allocate();

  /// What this rank sends: the values at the time of the exchange. They are kept until the caller changes
  /// them.
  std::span<double> mine(Slice slice);
  /// What `rank` sent with the last exchange. Hooks read it in before_update and after_run.
  std::span<const double> of_rank(Slice slice, int rank) const;
  /// The largest first value of the slice over all ranks; 0 if none is larger.
  double largest(Slice slice) const;

 private:
  SmallSum& exchange_;
  const int ranks_;
  int count_ = 0;
  bool allocated_ = false;
};

}  // namespace lockstep

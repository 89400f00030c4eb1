// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a training step of the nets `lstm` and `lstm_alone` cannot be faster than: the matrix products of its
// two LSTM layers, forward and both backwards, in a step's order, nothing between them.
#pragma once

#include <memory>
#include <vector>

#include "driver/workers.h"

namespace lockstep {

class RecurrentAlone {
 public:
  /// For `microshards` microshards of n samples on this rank; input_gradient: the first layer's, too.
  RecurrentAlone(Workers& workers, std::int64_t n, std::int64_t microshards, bool input_gradient);
  ~RecurrentAlone();
  /// All microshards once. Packing of weights is not in it.
  void run();

 private:
  class Chain;
  Workers& workers_;
  std::int64_t microshards_;
  std::vector<std::unique_ptr<Chain>> chains_;  ///< per thread
};

}  // namespace lockstep

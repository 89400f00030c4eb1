// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A lower bound for a training step of the nets `lstm` and `lstm_alone`: the matrix products of the two LSTM
// layers, forward and both backward passes, in the step's order, with nothing between them.
#pragma once

#include <memory>
#include <vector>

#include "train/workers.h"

namespace lockstep {

class RecurrentAlone {
 public:
  /// For `microshards` microshards of n samples on this rank. input_gradient: also the first layer's.
  RecurrentAlone(Workers& workers, std::int64_t n, std::int64_t microshards, bool input_gradient);
  ~RecurrentAlone();
  /// Runs all microshards once, without packing the weights.
  void run();

 private:
  class Chain;
  Workers& workers_;
  std::int64_t microshards_;
  std::vector<std::unique_ptr<Chain>> chains_;  ///< per thread
};

}  // namespace lockstep

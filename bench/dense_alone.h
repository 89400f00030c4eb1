// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A lower bound for a training step of the net `transformer`: the matrix products of its dense layers and
// projections, forward and both backward passes, in the step's order, with nothing between them. Attention's
// own kernels are excluded.
#pragma once

#include <memory>
#include <vector>

#include "train/workers.h"

namespace lockstep {

class DenseAlone {
 public:
  struct Product {
    std::int64_t in, out;
  };
  /// For `microshards` microshards of `rows` rows on this rank.
  DenseAlone(Workers& workers, std::vector<Product> products, std::int64_t rows, std::int64_t microshards);
  ~DenseAlone();
  /// Runs all microshards once, without packing the weights.
  void run();

 private:
  class Chain;
  Workers& workers_;
  std::int64_t microshards_;
  std::vector<std::unique_ptr<Chain>> chains_;  ///< per thread
};

}  // namespace lockstep

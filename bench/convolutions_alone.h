// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A lower bound for a training step: the net's convolutions alone, forward and both backward passes, one
// after the other as in a step, with nothing between them.
#pragma once

#include <memory>
#include <vector>

#include "nets.h"
#include "train/workers.h"

namespace lockstep {

class ConvolutionsAlone {
 public:
  /// For `microshards` microshards of n samples on this rank, distributed over the workers' threads as in a
  /// step.
  ConvolutionsAlone(Workers& workers, std::vector<BenchConvolution> convolutions, std::int64_t n,
                    std::int64_t microshards);
  ~ConvolutionsAlone();
  /// Runs all microshards once, without packing the weights.
  void run();

 private:
  class Chain;
  Workers& workers_;
  std::int64_t microshards_;
  std::vector<BenchConvolution> convolutions_;
  std::vector<std::unique_ptr<Chain>> chains_;  ///< per thread
};

}  // namespace lockstep

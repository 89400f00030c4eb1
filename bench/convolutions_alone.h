// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a training step of a net cannot be faster than: its convolutions, forward and both backwards, one
// after the other as in a step, nothing between them.
#pragma once

#include <memory>
#include <vector>

#include "driver/workers.h"
#include "nets.h"

namespace lockstep {

class ConvolutionsAlone {
 public:
  /// For `microshards` microshards of n samples on this rank, shared among the workers' threads as in a step.
  ConvolutionsAlone(Workers& workers, std::vector<BenchConvolution> convolutions, std::int64_t n,
                    std::int64_t microshards);
  ~ConvolutionsAlone();
  /// All microshards once. Packing of weights is not in it.
  void run();

 private:
  class Chain;
  Workers& workers_;
  std::int64_t microshards_;
  std::vector<BenchConvolution> convolutions_;
  std::vector<std::unique_ptr<Chain>> chains_;  ///< per thread
};

}  // namespace lockstep

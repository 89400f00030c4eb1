// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Per-position inputs of classification metrics, computed on the device that holds the outputs: a few numbers
// instead of C outputs. This header uses plain types only (isa.h).
#pragma once

#include <cstdint>

#include "kernels/lane.h"

namespace lockstep {

/// The scores of one position. A label that names no class leaves the label's fields 0.
struct ClassScore {
  std::int32_t largest;  ///< class of the largest output, the first of equal ones; ignores NaN; -1: all NaN
  std::int32_t larger;   ///< number of outputs larger than the label's; -1: an output is not finite
  double cross_entropy;  ///< -log softmax(outputs)[label], in double
  float of_label;        ///< the label's output
  float padding;
};

/// Selects the fields of a ClassScore. of_label costs nothing and is always set.
enum ClassScorePart : unsigned {
  kLargestClass = 1,
  kLabelRank = 2,  ///< larger
  kLabelCrossEntropy = 4,
  kLabelOutput = 8,
};

class MetricKernels {
 public:
  virtual ~MetricKernels();

  /// For each row i: to[i] from x[i][0 .. classes) and labels[i]. `parts` is a union of ClassScorePart; other
  /// fields are 0. Equal rows have equal bits.
  virtual void class_scores(const Lane&, std::int64_t rows, std::int64_t classes, const float* x,
                            const std::int32_t* labels, unsigned parts, ClassScore* to) const = 0;
};

}  // namespace lockstep

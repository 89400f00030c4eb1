// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What metrics of classes need of a position's C outputs, taken where the outputs are: a few numbers, not C.
// Plain types only.
#pragma once

#include <cstdint>

#include "kernels/lane.h"

namespace lockstep {

/// Of one position. A label that is none of the classes leaves its parts 0.
struct ClassScore {
  std::int32_t largest;  ///< the class with the largest output, the first of equal ones; NaN is passed over;
                         ///< -1: all are NaN
  std::int32_t larger;   ///< so many outputs are larger than the label's; -1: one is not finite
  double cross_entropy;  ///< -log softmax(outputs)[label], in double
  float of_label;        ///< the label's output
  float padding;
};

/// Which parts of a ClassScore are wanted; of_label costs nothing and is there always.
enum ClassScorePart : unsigned {
  kLargestClass = 1,
  kLabelRank = 2,  ///< larger
  kLabelCrossEntropy = 4,
  kLabelOutput = 8,
};

class MetricKernels {
 public:
  virtual ~MetricKernels();

  /// For each of the rows: to[i] of x[i][0 .. classes) and labels[i]. `parts`: a union of ClassScorePart;
  /// others are 0. The same bits for the same row.
  virtual void class_scores(const Lane&, std::int64_t rows, std::int64_t classes, const float* x,
                            const std::int32_t* labels, unsigned parts, ClassScore* to) const = 0;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How a data set is whitened. For dataset.h; whitening.h computes the numbers.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// The option `whiten` of a data set.
struct WhitenOptions {
  enum class Method { none, pca, zca };
  Method method = Method::none;
  double epsilon = 1e-6;  ///< added to the eigenvalues of the covariance
  /// The channels of a pixel are one vector; otherwise all values of a sample are.
  bool over_channels = false;
  std::int64_t components = 0;  ///< of pca; 0: as many as values
  double share = 0;             ///< > 0: the least number of components with more than this share of variance

  bool used() const { return method != Method::none; }
  friend bool operator==(const WhitenOptions&, const WhitenOptions&) = default;
};

/// y = matrix (x - mean), for vectors x of mean.size() values.
struct Whitening {
  std::vector<float> mean;
  std::vector<float> matrix;  ///< row-major, a row per component
  /// The variances of all directions, descending, if they were computed just now.
  std::vector<double> variances = {};

  bool empty() const { return mean.empty(); }
  std::int64_t values() const { return static_cast<std::int64_t>(mean.size()); }
  std::int64_t components() const { return static_cast<std::int64_t>(matrix.size() / mean.size()); }
};

}  // namespace lockstep

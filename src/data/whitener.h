// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whitens vectors: y = W (x - mean), in float32.
//
// A sum of the product takes 64 values at a time, in the order of the values: no result depends on which
// samples are whitened together.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/whiten_by.h"

namespace lockstep {

class Whitener {
 public:
  /// Changes nothing, and must not be applied.
  Whitener() = default;
  explicit Whitener(const Whitening& whitening);

  bool empty() const { return mean_.empty(); }
  std::int64_t values() const { return static_cast<std::int64_t>(mean_.size()); }
  std::int64_t components() const { return components_; }
  /// `in`: `count` vectors of values(), which are used up. `out`: as many of components(). A vector's result
  /// does not depend on the others. Sums are of 64 products each, in float32, and of these sums.
  void apply(float* in, std::int64_t count, float* out) const;

 private:
  std::vector<float> mean_;
  std::int64_t components_ = 0;
  /// The rows of the matrix, kPanel at a time, transposed: [panel][value][row of the panel]; 0 beyond the
  /// end.
  std::vector<float> panels_;
};

}  // namespace lockstep

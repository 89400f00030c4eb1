// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The second stage of features: normalised values are whitened (whitening.h).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/shape.h"
#include "data/whiten_by.h"
#include "data/whitener.h"

namespace lockstep {

class WhitenStage {
 public:
  /// Changes nothing.
  explicit WhitenStage(const Shape& shape) : stored_(shape), shape_(shape) {}
  /// For samples of `shape` from `source`. Throws Error(config) if they cannot be whitened so.
  WhitenStage(const WhitenOptions& options, const Shape& shape, std::string source);

  const WhitenOptions& options() const { return options_; }
  /// False if the number of components is that of the numbers, which are not known yet.
  bool knows_shape() const { return knows_shape_; }
  /// Shape of a sample after this stage. Needs knows_shape().
  const Shape& shape() const { return shape_; }
  /// The stage with the numbers of a training set. Throws Error(data) if they are not those of such samples.
  WhitenStage fitted(std::shared_ptr<const Whitening> values) const;
  /// Null: fitted() was not called.
  const std::shared_ptr<const Whitening>& whitening() const { return whitening_; }
  bool is_complete() const { return !options_.used() || whitening_ != nullptr; }

  /// The number of samples that share what is read of the matrix.
  std::int64_t samples_together() const;
  /// `in`: whole samples, which are used up. `out` has room for as many of shape().
  void apply(float* in, std::int64_t samples, float* out) const;

 private:
  WhitenOptions options_;
  Shape stored_, shape_;
  std::string source_;
  bool knows_shape_ = true;
  std::shared_ptr<const Whitener> whitener_;
  std::shared_ptr<const Whitening> whitening_;
};

}  // namespace lockstep

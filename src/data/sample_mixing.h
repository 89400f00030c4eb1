// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Mixup (Zhang et al. 2017, arXiv:1710.09412) and CutMix (Yun et al. 2019, arXiv:1905.04899): a training
// sample becomes a mixture of itself and a partner, and so does its label.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "config/params.h"
#include "core/shape.h"
#include "data/transform.h"

namespace lockstep {

/// The option `mix`.
struct MixingOptions {
  std::optional<double> mixup, cutmix;  ///< alpha of the Beta distribution; one of them, or both
  double probability = 1;
  std::optional<std::int64_t> classes;
};
/// The option of a data set that mixing_options() reads.
std::span<const ParamSpec> mixing_table();
/// The keys of its map.
std::span<const ParamSpec> mixing_keys();
/// Nothing without the option. Throws Error(config).
std::optional<MixingOptions> mixing_options(const Params& params);

class SampleMixing {
 public:
  /// Mixing of samples of one shape with `label_columns` labels: class indices if `indices`, otherwise rows.
  /// Throws Error(config) if they cannot be mixed.
  SampleMixing(const MixingOptions& options, const Shape& shape, bool indices, std::int64_t label_columns);

  /// Values of a label row.
  std::int64_t label_values() const { return label_values_; }
  /// out = the row of a class.
  void write_row(std::int32_t label, float* out) const;

  /// What is mixed: share * own + (1 - share) * partner, or the partner's values in a box.
  struct Draw {
    float share = 1;
    bool cuts = false;
    std::int64_t top = 0, bottom = 0, left = 0, right = 0;
  };
  Draw draw(const SampleKey& key) const;
  void mix_features(const Draw& draw, float* own, const float* partner) const;
  void mix_labels(const Draw& draw, float* own, const float* partner) const;

 private:
  MixingOptions options_;
  std::int64_t features_, height_ = 0, width_ = 0, channels_ = 0;
  std::int64_t label_values_;
};

}  // namespace lockstep

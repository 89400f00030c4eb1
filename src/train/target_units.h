// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The way of a target's numbers back from what a model is trained on to the data: the transforms, the
// whitening and the conversion of the target are undone, in this order (data/feature_stages.h). What has no
// way back (a sample's own mean and standard deviation, fewer components than values) is named.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/feature_stages.h"
#include "data/unit_change.h"

namespace lockstep {

class ReaderDataset;

class TargetUnits {
 public:
  /// Keeps the stages of `target`, whose numbers are known.
  explicit TargetUnits(const ReaderDataset& target);

  /// The model's numbers are not those of the data.
  bool differs() const { return differs_; }
  /// Why they cannot be converted; empty: they can.
  const std::string& problem() const { return problem_; }
  /// Numbers can be converted only with all others of the sample.
  bool needs_whole_samples() const { return !inverse_.empty(); }
  /// data = model * scale + shift of number i of a sample; false: it takes more than that.
  bool is_linear(std::int64_t number, double& scale, double& shift) const;

  /// From the model's units to those of the data, in place: numbers [first, first + numbers.size()) of a
  /// sample. Needs a way back.
  void to_data(std::int64_t first, std::span<double> numbers) const;
  /// The other way round.
  void to_model(std::int64_t first, std::span<double> numbers) const;

 private:
  struct Linear {
    double scale = 1, shift = 0;
  };
  Linear conversion_of(std::int64_t number) const;
  void invert_whitening();

  FeatureStages stages_;
  std::int64_t channels_;  ///< of the stored samples
  bool differs_ = false, converts_ = false, whitens_ = false;
  std::vector<UnitChange> changes_;  ///< of the transforms, the first one first
  std::int64_t last_channels_ = 1;   ///< of the samples after them
  std::vector<double> inverse_;      ///< of the whitening's matrix, row-major; empty: none
  std::string problem_;
};

}  // namespace lockstep

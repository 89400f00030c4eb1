// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Options of section data, beside those of a reader, that choose among the samples which the reader delivers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/params.h"
#include "data/sample_choice.h"

namespace lockstep {

/// What is chosen. Checked: the numbers fit together, whatever the number of samples.
struct ChoiceOptions {
  enum class Part { all, shares, holdout, fold };
  Part part = Part::all;
  double first_share = 0, last_share = 1;  ///< for Part::shares
  double holdout = 0;
  std::int64_t folds = 0, fold = 0;
  std::uint64_t split_seed = 0;
  std::int64_t split_unit = 1;
  std::int64_t skip = 0;
  std::optional<std::int64_t> take = std::nullopt;
  std::int64_t repeat = 1;  ///< passes that are an epoch of the training set
  Params written = {};      ///< for messages

  /// No two samples stay together.
  bool scatters() const { return part != Part::all && split_unit == 1; }
};

std::span<const ParamSpec> choice_table();

/// Reads the options, which are among `params`, for the training or the evaluation set. Throws Error(config)
/// with a position.
ChoiceOptions choice_options(const Params& params, bool evaluation);

/// The choice from a set of so many samples; null: all. Throws Error(config) if it is empty.
std::shared_ptr<const SampleChoice> choose_samples(const ChoiceOptions& options, bool evaluation,
                                                   std::int64_t num_samples);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Options of section data, in addition to those of a reader, that choose among the samples which the reader
// delivers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "config/params.h"
#include "data/class_quotas.h"
#include "data/sample_choice.h"
#include "data/split_keys.h"

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
  bool split_by_class = false;
  SplitKey split_key = SplitKey::none;
  std::int64_t skip = 0;
  std::optional<std::int64_t> take = std::nullopt;
  bool balances = false;                        ///< classes have given shares of an epoch
  std::map<std::int32_t, double> class_shares;  ///< of those that do not have 1
  bool mixes_sources = false;  ///< sources have given shares of an epoch (DataOptions::sources)
  std::int64_t repeat = 1;     ///< passes that are an epoch of the training set
  std::vector<std::int64_t> length_buckets = {};  ///< the greatest length of each but the last; none: unused
  Params written = {};                            ///< for messages

  /// No two samples stay together.
  bool scatters() const {
    return balances || mixes_sources || !length_buckets.empty() ||
           (part != Part::all && split_unit == 1 && !split_by_class && split_key == SplitKey::none);
  }
  /// The class of each sample must be known.
  bool needs_labels() const { return balances || split_by_class; }
};

std::span<const ParamSpec> choice_table();

/// Reads the options, which are among `params`, for the training or the evaluation set. Throws Error(config)
/// with a position.
ChoiceOptions choice_options(const Params& params, bool evaluation);

/// The choice from a set of `num_samples` samples; null: all. `labels`: the class of each, if needs_labels();
/// `places`: split_places(), if they are divided by keys. Throws Error(config) if it is empty.
std::shared_ptr<const SampleChoice> choose_samples(const ChoiceOptions& options, bool evaluation,
                                                   std::int64_t num_samples,
                                                   std::span<const std::int32_t> labels = {},
                                                   std::span<const double> places = {});

/// How often the samples of each class are in an epoch, for options that balance. Throws Error(config) if
/// shares are given for a class that has no samples, or no class has a share.
std::shared_ptr<const ClassQuotas> balance_classes(const ChoiceOptions& options, const SampleChoice* choice,
                                                   std::span<const std::int32_t> labels);

}  // namespace lockstep

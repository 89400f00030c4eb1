// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The option window of readers, with which the rows of a file are the steps of a series, and a
// sample has several of them. The sample of step t has the steps t - inputs + 1 to t as features; its label,
// or its target in a set of data.targets, is that of step t + horizon. All steps of a sample lie in the rows
// of one set: training and evaluation have none in common where their rows have none.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "config/params.h"
#include "data/dataset_parts.h"

namespace lockstep {

struct DataOptions;

struct StepWindow {
  /// Which steps are the features: the window, its last step alone, or the one at the horizon.
  enum class Use { inputs, last, target };
  std::int64_t inputs = 1, horizon = 0;
  Use use{};
  std::optional<std::string> time;  ///< dataset with the time of each step

  /// The steps from the first one of a sample to that of its label.
  std::int64_t length(bool with_horizon) const { return inputs + (with_horizon ? horizon : 0); }
};

/// The keys of the option's map.
std::span<const ParamSpec> step_window_keys();
/// The option; nothing: null. For option_as(). Throws Error(config).
std::optional<StepWindow> step_window(const Params& params, const ParamSpec& option);
/// True if a set has the option; `table`: the reader's, which may lack it.
bool has_step_window(const Params& params, std::span<const ParamSpec> table);

/// The options of a set of data.inputs or data.targets (`key_of_sets`): the windows of targets have use:
/// target if they do not say use.
Node with_window_use(Node options, std::string_view key_of_sets);
/// Throws Error(config) if random parts of a set would have steps in common.
void refuse_divided_windows(const DataOptions& options);

/// Turns samples that are steps into windows of them. `with_horizon`: the step at the horizon must exist, as
/// for training and for labels; otherwise there are samples up to the last step. `times`: of each step;
/// empty: steps follow one another. No sample has steps on both sides of a gap: of a distance that is larger
/// than 1.5 times the median. Throws Error(data) if no window fits, or times do not ascend.
void cut_windows(DatasetParts& parts, const StepWindow& window, bool with_horizon,
                 std::span<const double> times);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What an input function gives: samples that a reader finds in files, or that the program itself holds or
// computes. Batches, their order, shares of ranks and threads, and the end of an epoch are the step plan's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/option_value.h"
#include "core/shape.h"

namespace lockstep {

/// Samples in memory, one after the other.
struct SampleArrays {
  Shape shape = {};                        ///< of one sample, channels last
  std::vector<float> features = {};        ///< size x shape
  std::vector<std::int32_t> classes = {};  ///< size: class indices; empty: none, or targets
  std::vector<float> targets = {};         ///< size x target_columns
  std::int64_t target_columns = 0;
};

/// Samples that a function computes, or reads from wherever it likes, when they are needed.
struct ComputedSamples {
  std::int64_t size = 0;
  Shape shape = {};
  /// The labels, if any: one class index per sample, or `target_columns` numbers.
  bool has_classes = false;
  std::int64_t target_columns = 0;
  /// Fills in one sample: shape values, and the class or the targets; what the samples do not have is null.
  /// Several threads call it. The same sample has the same values whenever it is asked for, on each rank.
  std::function<void(std::int64_t sample, float* features, std::int32_t* label, float* targets)> fill = {};
};

class Input {
 public:
  /// Files: readers::csv({.path = "train.csv.gz"}), or the reader of a name that the program registered.
  /// Relative paths begin in the current folder.
  Input(Choice reader);
  /// Samples of the program, the same on all ranks. `name`: for messages, and for the run's configuration. A
  /// run that continues is refused if its samples are others.
  static Input arrays(const std::string& name, SampleArrays samples);
  static Input computed(const std::string& name, ComputedSamples samples);
  /// Several inputs per sample, that layers read by their names, and labels by name (Labels::operator[]).
  static Input named(std::vector<std::pair<std::string, Input>> inputs,
                     std::vector<std::pair<std::string, Input>> targets = {});

  /// Sets an option that goes with any reader: transforms, scale, take, ...
  Input& with(std::string_view option, const OptionValue& value);

  /// The section `data` of a configuration. `train` null: the evaluation set stands for it. Throws
  /// Error(config) if the two sets have different readers.
  static Node data_section(const Input* train, const Input* eval);

 private:
  Input() = default;
  Choice reader_;
  std::vector<std::pair<std::string, Input>> inputs_, targets_;
};

/// A function that is called on all ranks, when the samples are needed.
using InputFunction = std::function<Input()>;

}  // namespace lockstep

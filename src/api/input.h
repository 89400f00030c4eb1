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

#include "api/number_span.h"
#include "api/option_value.h"
#include "core/shape.h"

namespace lockstep {

class LocalSamples;  // local_samples.h

/// Samples in memory, one after the other.
struct SampleArrays {
  Shape shape = {};                        ///< of one sample, channels last
  std::vector<float> features = {};        ///< size x shape
  std::vector<std::int32_t> classes = {};  ///< size: class indices; empty: none, or targets
  std::vector<float> targets = {};         ///< size x target_columns
  std::int64_t target_columns = 0;
};

/// Samples in memory of the program, one after the other, which are read where they lie. They must not change
/// or move until the call that uses them returns: train(), evaluate(), of predict() the end of the stream.
/// `owner` keeps them alive that long; without it the program does.
struct MemorySamples {
  Shape shape = {};          ///< of one sample, channels last
  NumberSpan features = {};  ///< size x shape numbers; a batch takes them as float32
  /// size: class indices, whole numbers; empty: none, or targets. Other types than int32 are converted to a
  /// copy.
  NumberSpan classes = {};
  NumberSpan targets = {};  ///< size x target_columns; other types than float are converted to a copy
  std::int64_t target_columns = 0;
  std::shared_ptr<const void> owner = {};
};

/// Samples that a function computes, or reads from wherever it likes, when they are needed.
struct ComputedSamples {
  std::int64_t size = 0;
  Shape shape = {};
  /// The labels, if any: one class index per sample, or `target_columns` numbers.
  bool has_classes = false;
  std::int64_t target_columns = 0;
  /// Fills in one sample: shape values, and the class or the targets; what the samples do not have is null.
  /// Several threads call it. The same sample has the same values whenever it is asked for, on each rank. An
  /// exception ends the call on all ranks with an Error(data) that names the sample, in which it is nested.
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
  /// The same without a copy.
  static Input from_memory(const std::string& name, MemorySamples samples);
  /// Samples that exist on this rank only, none or any number of them. The set consists of those of all ranks
  /// in the order of the ranks, and a run with it has the bits of Input::arrays() with that set, whatever
  /// number of ranks they come from. When a call of an estimator begins, its ranks send each other their
  /// samples, from the thread of the call; each host then keeps one copy of all of them. On one rank they
  /// stay where they are. Throws Error(data), on all ranks, for other shapes, types or labels than those of
  /// another rank, and for values that are not finite, with rank and sample. `computed`: fill is called once
  /// for each sample of this rank, by one thread.
  static Input local(const std::string& name, SampleArrays samples);
  static Input local(const std::string& name, MemorySamples samples);
  static Input local(const std::string& name, ComputedSamples samples);
  /// Several inputs per sample, that layers read by their names, and labels by name (Labels::operator[]).
  static Input named(std::vector<std::pair<std::string, Input>> inputs,
                     std::vector<std::pair<std::string, Input>> targets = {});

  /// Sets an option that goes with any reader: transforms, scale, take, ...
  Input& with(std::string_view option, const OptionValue& value);

  /// The section `data` of a configuration. `train` null: the evaluation set stands for it. Throws
  /// Error(config) if the two sets have different readers.
  static Node data_section(const Input* train, const Input* eval);

  /// Those of local() in this input, which an estimator gathers.
  std::vector<std::shared_ptr<const LocalSamples>> local_samples() const;

 private:
  Input() = default;
  Choice reader_;
  std::shared_ptr<const LocalSamples> local_;
  std::vector<std::pair<std::string, Input>> inputs_, targets_;
};

/// A function that is called on all ranks, when the samples are needed.
using InputFunction = std::function<Input()>;

}  // namespace lockstep

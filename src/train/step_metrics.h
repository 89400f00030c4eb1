// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The numbers of the last training step, by name. Producers declare their metrics once, before the first
// step, and set the values in each step. Readers (hooks) look up an id once, and then read values by id. So a
// reader needs no producer's type.
//
// Trainer::metrics() declares, in this order:
//
//   loss                    of all heads and regularization
//   accuracy                of the only head with classes, else 0
//   <LossReport::names()>   loss/<head>, loss/regularization, <head>/accuracy
//   learning_rate
//   <other scheduled numbers> momentum, dropout1/rate, group2/learning_rate
//   loss_scale              where the loss is scaled
//   gradient_norm           where gradients are measured: before clipping
//   clipped                 where gradients are clipped by norm: the share that exceeds the limit
//   noise_scale             where it is measured (train/noise_scale.h)
//   samples                 of the batch; not for summaries, like all that follow
//   communication_seconds   waited for other ranks, since the trainer was made
//   input_seconds           spent gathering samples by thread 0, since the trainer was made
//
// The values are the same on all ranks, except for the two times. One thread. Only add() allocates.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// The metric is the accuracy of a head, which a model may choose not to report.
inline bool is_accuracy(std::string_view name) { return name.ends_with("/accuracy"); }

class StepMetrics {
 public:
  using Id = int;
  static constexpr Id kNone = -1;
  /// Reads a deferred value: nothing before the first step.
  using Read = std::function<std::optional<double>()>;
  /// summary: for the run's reports. hooks: for hooks that look for the name.
  enum class Use { summary, hooks };
  struct Metric {
    std::string name;
    Use use = Use::summary;
    Read read = {};         ///< empty: the value is set() in each step
    bool may_wait = false;  ///< reading the value may wait for the device
  };

  /// Declares a metric that set() gives its values. Throws Error(bug) if the name is taken.
  Id add(std::string name, Use use = Use::summary) {
    return add(Metric{.name = std::move(name), .use = use});
  }
  /// The general form, with which the value may be deferred until it is read.
  Id add(Metric metric);
  /// Declares one metric per name, with consecutive ids. Returns the first id.
  Id add(std::span<const std::string> names);

  void set(Id id, double value) { values_[static_cast<std::size_t>(id)] = value; }
  /// Forgets the values that were set.
  void clear();

  int size() const { return static_cast<int>(metrics_.size()); }
  /// The metrics in the order of declaration; an id is an index into it.
  std::span<const Metric> metrics() const { return metrics_; }
  /// kNone: there is no such metric.
  Id find(std::string_view name) const;
  bool may_wait(Id id) const { return metrics_[static_cast<std::size_t>(id)].may_wait; }
  /// The value of the last step; nothing where no step has set it.
  std::optional<double> value(Id id) const;
  /// The value by name; nothing where there is no such metric.
  std::optional<double> value(std::string_view name) const;

 private:
  std::vector<Metric> metrics_;
  std::vector<std::optional<double>> values_;
};

}  // namespace lockstep

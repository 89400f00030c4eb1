// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of a loss whose class weights follow from the numbers of the classes in the training set
// (class_weights: balanced). Whoever makes the model of a run finds it with a dynamic_cast from Loss.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device.h"

namespace lockstep {

class ClassBalance {
 public:
  virtual ~ClassBalance() = default;
  /// False: the weights are given, or there are none.
  virtual bool balances_classes() const = 0;
  /// Announces the labels of each class in the training set. Called after Loss::prepare(), before run().
  virtual void balance(Device& device, std::vector<std::int64_t> counts) = 0;
  /// What balance() got; empty before.
  virtual std::span<const std::int64_t> class_counts() const = 0;
};

/// The weights labels / (classes x labels of the class), whose mean over the labels is 1, as in scikit-learn.
/// Classes without a label do not count, and weigh 1.
std::vector<double> balanced_weights(std::span<const std::int64_t> counts);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Several observers of a step: each sees every call, in the order in which they were added.
#pragma once

#include <algorithm>
#include <vector>

#include "train/step_observer.h"

namespace lockstep {

class StepObservers final : public StepObserver {
 public:
  /// Nothing if it is there already.
  void add(StepObserver& observer) {
    if (std::ranges::find(list_, &observer) == list_.end()) list_.push_back(&observer);
  }
  /// Nothing if it is not there.
  void remove(StepObserver& observer) { std::erase(list_, &observer); }
  /// What an executor calls: null if there are none.
  StepObserver* any() {
    return list_.empty() ? nullptr : list_.size() == 1 ? list_.front() : static_cast<StepObserver*>(this);
  }

  void fetched(const Microshard& microshard, const Lane& lane, const float* features) override {
    for (StepObserver* observer : list_) observer->fetched(microshard, lane, features);
  }
  void forward(int operation, const Pass& pass) override {
    for (StepObserver* observer : list_) observer->forward(operation, pass);
  }
  void lost(const Microshard& microshard, const Lane& lane, std::span<const HeadSums> sums,
            std::span<const LossStage::Place> places, const LabelBlock& labels) override {
    for (StepObserver* observer : list_) observer->lost(microshard, lane, sums, places, labels);
  }
  void backward(int operation, const Pass& pass) override {
    for (StepObserver* observer : list_) observer->backward(operation, pass);
  }
  void backward_local(int operation, const Pass& pass) override {
    for (StepObserver* observer : list_) observer->backward_local(operation, pass);
  }
  void synchronised(int operation, bool backward, std::span<const double* const> totals) override {
    for (StepObserver* observer : list_) observer->synchronised(operation, backward, totals);
  }

 private:
  std::vector<StepObserver*> list_;
};

}  // namespace lockstep

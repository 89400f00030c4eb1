// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where an interrupted session left off between two steps: a hook that takes long (an evaluation) gave up, so
// that the state is saved in time, and it and the hooks behind it have still to be called. Kept in that
// checkpoint, and in no other, so that the next job calls them, with the step's result, before it goes on:
// nothing is left out, and nothing differs from a run that was not interrupted.
#pragma once

#include <array>
#include <string>

#include "core/tensor.h"
#include "train/trainer.h"

namespace lockstep {

class LeftOff {
 public:
  /// On-disk name: do not change.
  static constexpr const char* kPath = "state/session/left_off";
  enum class Method { none = 0, after_run = 1, end = 2 };

  void set(Method method, const std::string& hook, const StepResult& result);
  void clear() { values_.fill(0); }

  Method method() const { return static_cast<Method>(values_[0]); }
  bool is_at(const std::string& hook) const;
  StepResult result() const;
  /// A view, to save and to restore.
  Tensor tensor() { return {values_.data(), DType::f64, Shape({kValues})}; }

 private:
  static constexpr std::int64_t kValues = 11;
  std::array<double, kValues> values_{};
};

}  // namespace lockstep

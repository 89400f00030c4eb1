// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls of hooks that an interrupted session defers to the next job. A hook that takes long (an evaluation)
// ends early, so that the state is saved in time. The checkpoint then records that hook and the result of the
// step. The next job calls the hook and all hooks after it before its first step. No call is lost, and the
// run has the bits of one that was not interrupted.
#pragma once

#include <array>
#include <string>

#include "core/tensor.h"
#include "train/step_result.h"

namespace lockstep {

class DeferredCalls {
 public:
  /// On-disk name: do not change.
  static constexpr const char* kPath = "state/session/left_off";
  enum class Method { none = 0, after_run = 1, end = 2 };

  /// Defers `method` of `hook` and of the hooks after it, with this result.
  void set(Method method, const std::string& hook, const StepResult& result);
  void clear() { values_.fill(0); }

  Method method() const { return static_cast<Method>(values_[0]); }
  bool any() const { return method() != Method::none; }
  /// True for the name of the first hook.
  bool begin_with(const std::string& hook) const;
  StepResult result() const;
  /// A view, to save and to restore.
  Tensor tensor() { return {values_.data(), DType::f64, Shape({kValues})}; }

 private:
  static constexpr std::int64_t kValues = 11;
  std::array<double, kValues> values_{};
};

}  // namespace lockstep

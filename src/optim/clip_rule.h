// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The section `gradients` of a configuration: how the gradient of a global batch is clipped.
#pragma once

#include <span>

#include "config/params.h"

namespace lockstep {

struct ClipRule {
  enum class By { nothing, global_norm, norm, average_norm, value };
  By by = By::nothing;
  double limit = 0;         ///< of a norm
  float low = 0, high = 0;  ///< of values: low <= 0 <= high
  bool record_norm = false;
  bool watch = false;        ///< the norm is needed in each step, to see whether gradients are finite
  bool noise_scale = false;  ///< train/noise_scale.h
  double noise_decay = 0.99;

  bool clips() const { return by != By::nothing; }
  bool clips_norm() const { return clips() && by != By::value; }
  bool measures() const { return clips_norm() || record_norm || watch; }
  bool records() const { return clips_norm() || record_norm; }
};

/// Options of the section `gradients`.
std::span<const ParamSpec> clip_table();
/// `section` is checked against clip_table(). Throws Error(config) with position.
ClipRule clip_rule(const Params& section);

}  // namespace lockstep

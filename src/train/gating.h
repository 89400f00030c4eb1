// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What makes the gating of an update graph (optim/gating.h): parts of a run that need all gradients of a step
// before the first variable changes.
#pragma once

#include <string>

#include "optim/clip_rule.h"

namespace lockstep {

class Optimizer;

struct GatingNeeds {
  bool on_host = true, scales_loss = false, regularizes = false, shares_update = false;
  const ClipRule& clip;
  const Optimizer& optimizer;

  /// The first of them that applies, in words; empty: none.
  std::string why_graph() const;
};

}  // namespace lockstep

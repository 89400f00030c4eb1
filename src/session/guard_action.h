// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a run does about a number that is not finite, or a loss that jumps.
#pragma once

#include <string_view>

namespace lockstep {

enum class GuardAction { error, stop, skip, rollback, warn };

/// The action of a name that a configuration uses; any other name means `error`.
constexpr GuardAction guard_action(std::string_view name) {
  if (name == "stop") return GuardAction::stop;
  if (name == "skip") return GuardAction::skip;
  if (name == "rollback") return GuardAction::rollback;
  if (name == "warn") return GuardAction::warn;
  return GuardAction::error;
}

/// Nothing is updated with the step's gradients, and the run may go on.
constexpr bool prevents_update(GuardAction action) {
  return action != GuardAction::error && action != GuardAction::warn;
}

}  // namespace lockstep

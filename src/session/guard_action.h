// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a run does about a number that is not finite, or a loss that jumps.
#pragma once

namespace lockstep {

enum class GuardAction { error, stop, skip, rollback, warn };

/// Nothing is updated with the step's gradients, and the run may go on.
constexpr bool prevents_update(GuardAction action) {
  return action != GuardAction::error && action != GuardAction::warn;
}

}  // namespace lockstep

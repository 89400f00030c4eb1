// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The places where tests break a step on purpose (core/fault.h). Builds without LOCKSTEP_FAULTS contain none
// of it. A fault of step n occurs in step n, counted from 1; step 0 is the start.
//
//   - exit, kill, stop, exception, sleep: the rank leaves, dies, stops for good, throws, sleeps for an hour.
//   - skipped_collective: the rank skips the exchange of the step.
//   - extra_collective: it makes a call on the control communicator that no other rank makes.
//   - nan_gradient: a NaN in the loss's gradient, with a finite loss.
//   - flipped_bit: of a variable, after the update.
//   - differing_config: the start-up check sees another configuration.
#pragma once

#include <cstdint>

#include "comm/communicator.h"
#include "core/data.h"
#include "core/device.h"
#include "core/fault.h"
#include "kernels/lane.h"
#include "model/variable_store.h"

namespace lockstep {

#ifdef LOCKSTEP_FAULTS

/// At the beginning of step `step`: the faults that end or delay the rank.
void fault_in_step(std::int64_t step, Communicator& control);
inline bool fault_skips_collective() { return fault_is("skipped_collective"); }
/// `loss_gradient` lies on the device.
void fault_in_gradient(Device& device, const Lane& lane, Data loss_gradient);
void fault_in_variables(VariableStore& variables);
inline const char* fault_in_config() {
  return fault_is("differing_config") ? "a fault on purpose: another configuration\n" : "";
}

#else

inline void fault_in_step(std::int64_t, Communicator&) {}
inline bool fault_skips_collective() { return false; }
inline void fault_in_gradient(Device&, const Lane&, Data) {}
inline void fault_in_variables(VariableStore&) {}
inline const char* fault_in_config() { return ""; }

#endif

}  // namespace lockstep

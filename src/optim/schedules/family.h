// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the files of the schedules share.
#pragma once

#include <memory>

#include <type_traits>

#include "config/option.h"
#include "optim/schedule.h"

namespace lockstep {

/// Of a formula whose constructor takes Formula::Options, and the Params for messages if it refuses some.
template <typename Formula>
std::unique_ptr<Schedule> make_formula(const Params& p) {
  using Options = typename Formula::Options;
  if constexpr (std::is_constructible_v<Formula, const Options&, const Params&>)
    return std::make_unique<Formula>(p.as<Options>(), p);
  else
    return std::make_unique<Formula>(p.as<Options>());
}

inline constexpr OptionRange kTimeRange = above(0).up_to(1e15);
template <auto... kPath>
constexpr ParamSpec initial_option() {
  return option<kPath...>("initial", kRequired, above(0).up_to(1e30), "value at time 0");
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the files of the schedules share.
#pragma once

#include <memory>

#include "optim/schedule.h"

namespace lockstep {

template <typename Formula>
std::unique_ptr<Schedule> make_formula(const Params& p) {
  return std::make_unique<Formula>(p);
}

inline constexpr std::string_view kTimeRange = "(0, 1e15]";
inline constexpr ParamSpec kInitialOption = {"initial", ParamType::real, kRequired, "(0, 1e30]",
                                             "value at time 0"};

}  // namespace lockstep

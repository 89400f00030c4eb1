// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How numbers of training are written for people: alike in the log, in progress and in tables. Shares such as
// accuracy are fractions, as in metrics.jsonl and in the options that are compared with them. JSON has all
// digits.
#pragma once

#include <fmt/format.h>

#include <string>

#include "core/plain_nan.h"

namespace lockstep {

/// Six digits: "0.143612", "12345.7", "1.5e-07", "nan".
inline std::string number_text(double value) { return fmt::format("{:.6g}", plain_nan(value)); }

}  // namespace lockstep

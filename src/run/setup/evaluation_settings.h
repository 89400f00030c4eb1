// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a result of evaluations depends on: values of one metric compare only if all of it is the same.
#pragma once

#include <string>
#include <string_view>

#include "config/node.h"
#include "session/state_settings.h"

namespace lockstep {

/// `root`: the whole configuration, whose relative paths begin in `base_directory`. `metric`: "loss",
/// "accuracy" or a metric of eval.metrics.
StateSettings evaluation_settings(const Node& root, const std::string& base_directory,
                                  std::string_view metric);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Configurations of runs, for reports.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "run/sections/config_values.h"

namespace lockstep::report {

/// A config.yaml as a flat list of values. Throws Error(config) for a text that is no YAML.
std::vector<ConfigValue> values_of_config(const std::string& text, const std::string& path);
/// YAML as HTML with emphasised keys.
std::string yaml_html(std::string_view text);

}  // namespace lockstep::report

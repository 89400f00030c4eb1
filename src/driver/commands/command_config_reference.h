// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep config-reference`: the reference of all options as Markdown.
#pragma once

#include "driver/command_line.h"

namespace lockstep {

int command_config_reference(const CommandLine& line);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_config_reference.h"

#include <fmt/format.h>

#include "driver/config_reference.h"

namespace lockstep {

int command_config_reference(const CommandLine&) {
  fmt::print("{}", config_reference());
  return 0;
}

}  // namespace lockstep

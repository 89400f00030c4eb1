// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep config-reference`: the reference of all configuration options, as Markdown; with --header the
// same tables as a C++ header.
#include "reference/config_reference.h"

#include <fmt/format.h>

#include "comm/environment.h"
#include "driver/command_line.h"
#include "driver/commands/commands.h"
#include "reference/options_header.h"

namespace lockstep {

int run_command(const ConfigReferenceArguments& arguments) {
  if (launcher_rank_hint() == 0)
    fmt::print("{}", arguments.header ? options_header() : config_reference(reference_sections()));
  return 0;
}

}  // namespace lockstep

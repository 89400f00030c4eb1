// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep config-reference`: the reference of all configuration options, as Markdown; with --header the
// same tables as a C++ header.
#include "reference/config_reference.h"

#include <fmt/format.h>

#include "comm/environment.h"
#include "driver/command_line/command.h"
#include "reference/options_header.h"

namespace lockstep {

namespace {

struct ConfigReferenceArguments {
  bool header = false;  ///< the C++ header of options instead
};

void declare(CommandOptions& options, ConfigReferenceArguments& arguments) {
  options.add_flag("--header", arguments.header, "Print the options as a C++ header instead");
}

int run(const ConfigReferenceArguments& arguments) {
  if (launcher_rank_hint() == 0)
    fmt::print("{}", arguments.header ? options_header() : config_reference(reference_sections()));
  return 0;
}

}  // namespace

extern const Command kConfigReferenceCommand = {
    "config-reference", "Print the reference of all configuration options as Markdown",
    "lockstep config-reference > docs/config.md", call_with<ConfigReferenceArguments, declare, run>};

}  // namespace lockstep

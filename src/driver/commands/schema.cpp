// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep schema`: the JSON schema of a configuration, for editors.
#include <fmt/format.h>

#include "comm/environment.h"
#include "driver/command_line.h"
#include "driver/commands/commands.h"
#include "reference/json_schema.h"

namespace lockstep {

int run_command(const SchemaArguments&) {
  if (launcher_rank_hint() == 0) fmt::print("{}", json_schema());
  return 0;
}

}  // namespace lockstep

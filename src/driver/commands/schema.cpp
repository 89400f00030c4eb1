// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep schema`: the JSON schema of a configuration, for editors.
#include <fmt/format.h>

#include "comm/environment.h"
#include "driver/command_line/command.h"
#include "reference/json_schema.h"

namespace lockstep {

namespace {

int run(const NoArguments& /*arguments*/) {
  if (launcher_rank_hint() == 0) fmt::print("{}", json_schema());
  return 0;
}

}  // namespace

extern const Command kSchemaCommand = {
    "schema", "Print the JSON schema of a configuration, with which editors complete and check it",
    "lockstep schema > lockstep.schema.json", call_with<NoArguments, no_options, run>};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep man-page`: the manual pages.
#include <fmt/format.h>

#include <filesystem>

#include "comm/environment.h"
#include "driver/command_line.h"
#include "driver/commands/commands.h"
#include "io/atomic_file.h"

namespace lockstep {

int run_command(const ManPageArguments& arguments) {
  if (launcher_rank_hint() != 0) return 0;
  if (arguments.folder.empty()) {
    fmt::print("{}", arguments.pages.front().second);
    return 0;
  }
  for (const auto& [name, text] : arguments.pages)
    write_file_atomically((std::filesystem::path(arguments.folder) / name).string(), text);
  return 0;
}

}  // namespace lockstep

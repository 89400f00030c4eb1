// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep man-page`: the manual pages.
#include "reference/man_pages.h"

#include <fmt/format.h>

#include <filesystem>

#include "comm/environment.h"
#include "driver/commands/command_table.h"
#include "io/atomic_file.h"

namespace lockstep {

namespace {

/// Without a folder the first page is printed.
struct ManPageArguments {
  std::string folder;
};

void declare(CommandOptions& options, ManPageArguments& arguments) {
  options.add("--output-dir", arguments.folder, "Write all pages into this folder, which must be there")
      .type_name("DIR")
      .check(not_empty("a path"));
}

int run(const ManPageArguments& arguments) {
  if (launcher_rank_hint() != 0) return 0;
  const auto pages = man_pages(description_of(command_table()));
  if (arguments.folder.empty()) {
    fmt::print("{}", pages.front().second);
    return 0;
  }
  for (const auto& [name, text] : pages)
    write_file_atomically((std::filesystem::path(arguments.folder) / name).string(), text);
  return 0;
}

}  // namespace

extern const Command kManPageCommand = {
    "man-page", "Print the manual page lockstep(1), or write it and one of each command",
    "lockstep man-page | man -l -\n"
    "lockstep man-page --output-dir man1",
    call_with<ManPageArguments, declare, run>};

}  // namespace lockstep

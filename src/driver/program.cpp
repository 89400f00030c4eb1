// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/program.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>

#include "core/error.h"
#include "driver/command_line.h"
#include "driver/commands/commands.h"

namespace lockstep {

namespace {

void print_error(const std::string& message) {
  std::fflush(stdout);
  // Not fmt::print, which throws when standard error is closed: the exit code must still be the right one.
  std::fprintf(stderr, "error: %s\n", message.c_str());
}

}  // namespace

int run_command(const HelpArguments& arguments) {
  if (launcher_rank_hint() == 0) fmt::print("{}", arguments.text);
  return 0;
}

int run_program(int argc, const char* const* argv) {
  try {
    const int code = std::visit([](const auto& arguments) { return run_command(arguments); },
                                parse_command_line(argc, argv));
    // Results go to standard output: a full disk or a closed pipe must not look like success.
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      print_error("standard output could not be written");
      return code == 0 ? 1 : code;
    }
    return code;
  } catch (const Error& error) {
    const bool same_on_all_ranks = error.kind() == ErrorKind::usage || error.kind() == ErrorKind::config;
    if (!same_on_all_ranks || launcher_rank_hint() == 0) print_error(error.what());
    return exit_code(error.kind());
  } catch (const std::bad_alloc&) {
    print_error(
        "out of memory\n  Use a smaller train.batch_size, more ranks, or a machine with more memory.");
    return 1;
  } catch (const std::exception& error) {
    print_error(error.what());
    return 1;
  }
}

}  // namespace lockstep

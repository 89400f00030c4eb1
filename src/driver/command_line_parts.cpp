// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line_parts.h"

#include <CLI/CLI.hpp>

#include "driver/command_line_checks.h"

namespace lockstep {

void add_target(CLI::App* command, const char* name, std::string& target, const char* help) {
  command->add_option(name, target, help)->required()->type_name("")->check(not_empty("a path"));
}

void add_checkpoint(CLI::App* command, std::string& checkpoint) {
  command->add_option("--checkpoint", checkpoint, "The checkpoint to use; default: the newest intact one")
      ->type_name("FILE")
      ->check(not_empty("a path"));
}

void add_averages(CLI::App* command, bool& averages) {
  command->add_flag_callback(
      "--without-averages", [&averages] { averages = false; },
      "Use the variables themselves where the checkpoint has moving averages of them");
}

void add_run_dir(CLI::App* command, std::string& run_dir, const char* help) {
  command->add_option("--run-dir", run_dir, help)->type_name("DIR")->check(not_empty("a path"));
}

void add_output(CLI::App* command, std::string& output) {
  command->add_option("--output", output, "The file to write; - for standard output")
      ->required()
      ->type_name("FILE")
      ->check(not_empty("a path"));
}

void add_json(CLI::App* command, bool& json, const char* help) { command->add_flag("--json", json, help); }

void add_quiet(CLI::App* command, bool& quiet) {
  command->add_flag("--quiet", quiet,
                    "Print only warnings and errors on standard error; the log has all messages");
}

}  // namespace lockstep

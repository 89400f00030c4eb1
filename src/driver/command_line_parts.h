// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to the command line: the options that several commands have.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace lockstep {

/// A required positional argument that is a path.
void add_target(CLI::App* command, const char* name, std::string& target, const char* help);
void add_checkpoint(CLI::App* command, std::string& checkpoint);
/// --without-averages.
void add_averages(CLI::App* command, bool& averages);
void add_run_dir(CLI::App* command, std::string& run_dir, const char* help);
void add_output(CLI::App* command, std::string& output);
void add_json(CLI::App* command, bool& json, const char* help = "Print JSON");
void add_quiet(CLI::App* command, bool& quiet);

}  // namespace lockstep

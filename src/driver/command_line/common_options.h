// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The options that several commands have.
#pragma once

#include <string>
#include <vector>

#include "driver/command_line/command_options.h"
#include "run/setup/run_arguments.h"

namespace lockstep {

/// A required positional argument that is a path.
void add_target(CommandOptions& options, const char* name, std::string& target, const char* help);
void add_checkpoint(CommandOptions& options, std::string& checkpoint);
/// --checkpoint best|last, for commands whose arguments are files or run directories
/// (session/checkpoint_choice.h).
void add_checkpoint_choice(CommandOptions& options, std::string& choice);
/// --without-averages.
void add_averages(CommandOptions& options, bool& averages);
void add_run_dir(CommandOptions& options, std::string& run_dir, const char* help);
void add_output(CommandOptions& options, std::string& output);
void add_json(CommandOptions& options, bool& json, const char* help = "Print JSON");
void add_quiet(CommandOptions& options, bool& quiet);
/// --accept-changes.
void add_accept_changes(CommandOptions& options, bool& accept);
/// --set and --threads: `overrides` are the assignments of --set, and at last the one that --threads stands
/// for.
void add_overrides(CommandOptions& options, std::vector<std::string>& overrides);
/// --layout: how tensors of a file are named and lie.
void add_layout(CommandOptions& options, std::string& layout, const char* help);
/// --hang-rank and --hang-seconds.
void add_hang(CommandOptions& options, HangArguments& hang);

}  // namespace lockstep

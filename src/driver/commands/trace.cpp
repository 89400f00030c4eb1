// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep trace`: what the profiles of a run say, and one file of all of them.
#include "core/error.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/atomic_file.h"
#include "io/print_result.h"
#include "view/trace/trace_profile.h"

namespace lockstep {

namespace {

struct TraceArguments {
  std::string run_dir;
  bool merge = false;
  std::string output;  ///< of merge; empty: RUN_DIR/profile/merged.json
};

void declare(CommandOptions& options, TraceArguments& arguments) {
  add_target(options, "RUN_DIR", arguments.run_dir, "Run directory, with profiles of the hook 'profile'");
  options.add_flag("--merge", arguments.merge, "Write all of them to one file, on one clock");
  options.add("--output", arguments.output, "The file of --merge; default: RUN_DIR/profile/merged.json")
      .type_name("FILE")
      .check(not_empty("a path"));
}

int run(const TraceArguments& arguments) {
  if (!arguments.output.empty() && !arguments.merge)
    throw Error(ErrorKind::usage, "trace: --output needs --merge", "", "See: lockstep trace --help");
  std::vector<TraceProfile> profiles = read_profiles(arguments.run_dir);
  for (std::size_t i = 0; i < profiles.size(); ++i)
    print_lines((i > 0 ? "\n" : "") + trace_summary(profiles[i]));
  if (!arguments.merge) return 0;
  const std::string path =
      arguments.output.empty() ? arguments.run_dir + "/profile/merged.json" : arguments.output;
  const std::size_t count = profiles.size();
  write_file_atomically(path, merged_trace(std::move(profiles)));
  print_result("\n{} profile{} in {}: open it at ui.perfetto.dev\n", count, count == 1 ? "" : "s", path);
  return 0;
}

}  // namespace

extern const Command kTraceCommand = {
    "trace", "Summarise the profiles of a run, and merge them into one for Perfetto",
    "lockstep trace runs/digits --merge", call_with<TraceArguments, declare, run>};

}  // namespace lockstep

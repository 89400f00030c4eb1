// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep trace`: what the profiles of a run say, and one file of all of them.
#include "core/error.h"
#include "driver/commands/commands.h"
#include "io/atomic_file.h"
#include "io/print_result.h"
#include "view/trace/trace_profile.h"

namespace lockstep {

int run_command(const TraceArguments& arguments) {
  if (!arguments.output.empty() && !arguments.merge)
    throw Error(ErrorKind::usage, "trace: --output needs --merge", "", "See: lockstep trace --help");
  std::vector<TraceProfile> profiles = read_profiles(arguments.run_dir);
  for (std::size_t i = 0; i < profiles.size(); ++i)
    print_result("{}{}", i > 0 ? "\n" : "", trace_summary(profiles[i]));
  if (!arguments.merge) return 0;
  const std::string path =
      arguments.output.empty() ? arguments.run_dir + "/profile/merged.json" : arguments.output;
  const std::size_t count = profiles.size();
  write_file_atomically(path, merged_trace(std::move(profiles)));
  print_result("\n{} profile{} in {}: open it at ui.perfetto.dev\n", count, count == 1 ? "" : "s", path);
  return 0;
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/ensemble_arguments.h"

namespace lockstep {

namespace {

/// The first of `all`, if there is one; the others go to `more`.
void split(const std::vector<std::string>& all, std::string& first, std::vector<std::string>& more) {
  if (all.empty()) return;
  first = all.front();
  more.assign(all.begin() + 1, all.end());
}

}  // namespace

void add_ensemble(CommandOptions& options, EnsembleArguments& arguments, const char* name, const char* help) {
  auto& runs = options.keep<std::vector<std::string>>();
  auto& checkpoints = options.keep<std::vector<std::string>>();
  options.add(name, runs, help).required().type_name("PATH").check(not_empty("a path"));
  options
      .add("--checkpoint", checkpoints,
           "The checkpoint to use: best, last (the default: the newest intact one), the number of a step, or "
           "a "
           "file; several are an ensemble")
      .type_name("best|last|STEP|FILE")
      .check(not_empty("a path"))
      .one_value_each();
  options.after_parsing([&arguments, &runs, &checkpoints] {
    split(runs, arguments.run.target, arguments.more_runs);
    split(checkpoints, arguments.run.checkpoint, arguments.more_checkpoints);
  });
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/ensemble_arguments.h"

#include <fmt/format.h>

#include "driver/command_line/command.h"

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
           "a file; several are an ensemble")
      .type_name("best|last|STEP|FILE")
      .check(not_empty("a path"))
      .one_value_each();
  options.after_parsing([&arguments, &runs, &checkpoints] {
    split(runs, arguments.run.target, arguments.more_runs);
    split(checkpoints, arguments.run.checkpoint, arguments.more_checkpoints);
  });
}

void add_augmentations(CommandOptions& options, EnsembleArguments& arguments, const char* command) {
  constexpr std::int64_t kMost = 1000;
  options
      .add("--augmentations", arguments.augmentations,
           "Test-time augmentation: average the predictions of N views of each sample, itself and N - 1 with "
           "the random transforms of training; default: 1")
      .type_name("N")
      .check(whole_number(1, kMost));
  options.after_parsing([&arguments, command] {
    if (arguments.augmentations > 1 && arguments.has_more())
      throw usage_error(
          fmt::format("{}: --augmentations belongs to one model, and an ensemble is given", command),
          "Leave it out, or name one run and one checkpoint.");
  });
}

}  // namespace lockstep

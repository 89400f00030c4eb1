// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep completion`: the completion of the command line for a shell.
#include "reference/completion.h"

#include <fmt/format.h>

#include "comm/environment.h"
#include "driver/commands/command_table.h"

namespace lockstep {

namespace {

struct CompletionArguments {
  std::string shell = "bash";
};

void declare(CommandOptions& options, CompletionArguments& arguments) {
  options.add("SHELL", arguments.shell, "bash, zsh or fish; default: bash")
      .type_name("bash|zsh|fish")
      .check(one_of_names({"bash", "zsh", "fish"}));
}

int run(const CompletionArguments& arguments) {
  if (launcher_rank_hint() == 0)
    fmt::print("{}", completion_script(description_of(command_table()), completion_words(), arguments.shell));
  return 0;
}

}  // namespace

extern const Command kCompletionCommand = {
    "completion", "Print the completion of commands, options and configuration keys for a shell",
    "source <(lockstep completion bash)\n"
    "source <(lockstep completion zsh)\n"
    "lockstep completion fish | source",
    call_with<CompletionArguments, declare, run>};

}  // namespace lockstep

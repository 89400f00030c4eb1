// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_line/common_options.h"

#include <fmt/format.h>

#include "session/checkpoint_choice.h"

namespace lockstep {

namespace {

// Ranges that no use exceeds. That of threads is the same in the configuration.
constexpr std::int64_t kMostThreads = 65536, kMostRanks = 1'000'000;
constexpr double kMostSeconds = 1e9;

}  // namespace

void add_target(CommandOptions& options, const char* name, std::string& target, const char* help) {
  options.add(name, target, help).required().type_name("").check(not_empty("a path"));
}

void add_checkpoint(CommandOptions& options, std::string& checkpoint) {
  options
      .add("--checkpoint", checkpoint,
           "The checkpoint to use: best, last (the default: the newest intact one), the number of a step, or "
           "a "
           "file")
      .type_name("best|last|STEP|FILE")
      .check(not_empty("a path"));
}

void add_checkpoint_choice(CommandOptions& options, std::string& choice) {
  options
      .add("--checkpoint", choice,
           "Of a run directory: best, which checkpoint.keep_best keeps, last (the default: the newest intact "
           "one), or the number of a step")
      .type_name("best|last|STEP")
      .check(must_be("best, last or the number of a step", is_checkpoint_word));
}

void add_averages(CommandOptions& options, bool& averages) {
  options.add_flag_off("--without-averages", averages,
                       "Use the variables themselves where the checkpoint has moving averages of them");
}

void add_accept_changes(CommandOptions& options, bool& accept) {
  options.add_flag("--accept-changes", accept,
                   "Continue a run although its data, or values of its configuration that change the "
                   "result, have changed");
}

void add_run_dir(CommandOptions& options, std::string& run_dir, const char* help) {
  options.add("--run-dir", run_dir, help).type_name("DIR").check(not_empty("a path"));
}

void add_output(CommandOptions& options, std::string& output) {
  options.add("--output", output, "The file to write; - for standard output")
      .required()
      .type_name("FILE")
      .check(not_empty("a path"));
}

void add_json(CommandOptions& options, bool& json, const char* help) {
  options.add_flag("--json", json, help);
}

void add_quiet(CommandOptions& options, bool& quiet) {
  options.add_flag("--quiet", quiet,
                   "Print only warnings and errors on standard error; the log has all messages");
}

void add_overrides(CommandOptions& options, std::vector<std::string>& overrides) {
  options.add("--set", overrides, "Override one configuration key, as section.key=value; may be repeated")
      .type_name("KEY=VALUE")
      .one_value_each();
  auto& threads = options.keep<std::optional<std::int64_t>>();
  options.add("--threads", threads, "Compute threads per rank")
      .type_name("N")
      .check(whole_number(1, kMostThreads));
  options.after_parsing([&overrides, &threads] {
    if (threads) overrides.push_back(fmt::format("threads={}", *threads));
  });
}

void add_layout(CommandOptions& options, std::string& layout, const char* help) {
  options.add("--layout", layout, help)
      .type_name("lockstep|pytorch")
      .check(one_of_names({"lockstep", "pytorch"}));
}

void add_hang(CommandOptions& options, HangArguments& hang) {
  options.add("--hang-rank", hang.rank, "Hold this rank before its first step until a debugger resumes it")
      .type_name("N")
      .check(whole_number(0, kMostRanks));
  options.add("--hang-seconds", hang.seconds, "How long it waits for the debugger; default: 3600")
      .type_name("S")
      .check(number_above(0, kMostSeconds));
}

}  // namespace lockstep

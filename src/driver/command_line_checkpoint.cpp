// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The commands `lockstep checkpoint list|verify|diff|average|export` with their options.
#include <fmt/format.h>

#include "driver/command_line_errors.h"
#include "driver/command_line_options.h"
#include "driver/command_line_parts.h"

namespace lockstep {

std::vector<std::pair<std::string, std::string>> CommandLineParser::renames() const {
  std::vector<std::pair<std::string, std::string>> renames;
  for (const std::string& rule : rename_) {
    const std::size_t equals = rule.find('=');
    if (equals == std::string::npos)
      throw usage_error(fmt::format("--rename {} is not FROM=TO", rule),
                        "See: lockstep checkpoint export --help");
    renames.emplace_back(rule.substr(0, equals), rule.substr(equals + 1));
  }
  return renames;
}

void CommandLineParser::add_checkpoint_commands() {
  CLI::App* group =
      app_.add_subcommand("checkpoint", "List, verify, compare, average and export checkpoints");
  group->require_subcommand(1);
  group->footer("Help of one of them: lockstep checkpoint list --help");

  CLI::App* list = add(*group, "list", "Print the checkpoints of a run, and why each is kept",
                       "lockstep checkpoint list runs/digits --verify", [this] { return list_; });
  add_target(list, "RUN_DIR", list_.run_dir, "Run directory");
  list->add_flag("--verify", list_.verify, "Read every byte, and say which are intact");
  add_json(list, list_.json);

  CLI::App* verify =
      add(*group, "verify", "Read every byte and name what is damaged; exit code 4 if anything is",
          "lockstep checkpoint verify runs/digits", [this] { return verify_; });
  add_target(verify, "RUN_DIR|FILE", verify_.target,
             "Run directory, for all its checkpoints, or a checkpoint file");

  CLI::App* diff = add(*group, "diff", "Compare two checkpoints tensor by tensor; exit code 1 if they differ",
                       "lockstep checkpoint diff runs/one runs/two", [this] { return diff_; });
  add_target(diff, "A", diff_.first, "Checkpoint file, or run directory for its newest checkpoint");
  add_target(diff, "B", diff_.second, "Checkpoint file, or run directory for its newest checkpoint");
  add_json(diff, diff_.json);

  CLI::App* average =
      add(*group, "average", "Write the mean of the variables of several checkpoints of one model",
          "lockstep checkpoint average runs/digits/checkpoints/step-00000240.h5 "
          "runs/digits/checkpoints/step-00000480.h5 --output mean.h5",
          [this] { return average_; });
  average
      ->add_option("FILE", average_.files,
                   "Checkpoint files, or run directories for their newest checkpoints")
      ->required()
      ->expected(2, 1 << 20)
      ->type_name("");
  add_output(average, average_.output);

  CLI::App* extract =
      add(*group, "export", "Write the variables alone, without optimizer and run",
          "lockstep checkpoint export runs/digits --output weights.h5 --variables 'conv*'", [this] {
            CheckpointExportArguments arguments = export_;
            arguments.rename = renames();
            return arguments;
          });
  add_target(extract, "RUN_DIR|FILE", export_.target,
             "Run directory, for its newest checkpoint, or a checkpoint file");
  add_output(extract, export_.output);
  add_averages(extract, export_.averages);
  extract
      ->add_option(
          "--variables", export_.variables,
          "Only variables whose whole name this pattern matches (* is any text; re: begins a regular "
          "expression); may be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  extract
      ->add_option("--rename", rename_,
                   "Give a variable another name: a name, a scope that ends with '/', or a pattern, whose * "
                   "and groups are $1, $2, ...; may be repeated")
      ->type_name("FROM=TO")
      ->allow_extra_args(false);
}

}  // namespace lockstep

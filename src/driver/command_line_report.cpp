// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The commands `lockstep report` and `lockstep compare` with their options.
#include "driver/command_line_checks.h"
#include "driver/command_line_options.h"
#include "driver/command_line_parts.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostMistakes = 200;

}  // namespace

void CommandLineParser::add_report() {
  CLI::App* command =
      add(app_, "report",
          "Write one HTML file about a run: curves, network, evaluation, mistakes, jobs, checkpoints",
          "lockstep report runs/digits --output digits.html", [this] { return report_; });
  add_target(command, "RUN_DIR", report_.run_dir, "Run directory; the run may go on meanwhile");
  command
      ->add_option("--output", report_.output,
                   "The file to write; default: report.html in the run directory; - for standard output")
      ->type_name("FILE")
      ->check(not_empty("a path"));
  command
      ->add_option(
          "--mistakes", report_.mistakes,
          "Predict the evaluation set and show N of the worst mistakes; 0: do not open the data; default: 12 "
          "where the set is small")
      ->type_name("N")
      ->check(whole_number(0, kMostMistakes));
}

void CommandLineParser::add_compare() {
  CLI::App* command =
      add(app_, "compare",
          "Compare runs: curves, metrics, speed, configurations, and where runs that should be equal part",
          "lockstep compare runs/a runs/b --output compared.html", [this] { return compare_; });
  command->add_option("RUN", compare_.run_dirs, "Run directories, at least two")
      ->required()
      ->expected(2, 64)
      ->type_name("")
      ->check(not_empty("a path"));
  command
      ->add_option("--output", compare_.output,
                   "Write an HTML file, too; - for standard output, instead of the text")
      ->type_name("FILE")
      ->check(not_empty("a path"));
  command->add_flag(
      "--expect-equal", compare_.expect_equal,
      "Exit code 1 if a run differs from the first one in a record, checkpoint or recorded step");
}

}  // namespace lockstep

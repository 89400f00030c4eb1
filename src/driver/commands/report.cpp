// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep report`: one HTML file about a run. Reads the run directory, takes no lock; the run may go on.
// One process, no MPI.
#include <filesystem>

#include "core/log.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/output_file.h"
#include "io/print_result.h"
#include "view/report/report_page.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostMistakes = 200;

struct ReportArguments {
  std::string run_dir, output;           ///< output empty: report.html in the run directory
  std::string checkpoint;                ///< "last" or "best"; empty: the last
  std::optional<std::int64_t> mistakes;  ///< of each list; empty: some, where computing them is quick
};

void declare(CommandOptions& options, ReportArguments& arguments) {
  add_target(options, "RUN_DIR", arguments.run_dir, "Run directory; the run may go on meanwhile");
  options
      .add("--output", arguments.output,
           "The file to write; default: report.html in the run directory; - for standard output")
      .type_name("FILE")
      .check(not_empty("a path"));
  options
      .add(
          "--mistakes", arguments.mistakes,
          "Predict the evaluation set and show N of the worst mistakes; 0: do not open the data; default: 12 "
          "where the set is small")
      .type_name("N")
      .check(whole_number(0, kMostMistakes));
  add_checkpoint_choice(options, arguments.checkpoint);
}

int run(const ReportArguments& arguments) {
  report::PredictionLimits limits;
  if (arguments.mistakes) limits = {.mistakes = *arguments.mistakes, .whatever_it_takes = true};
  limits.checkpoint = arguments.checkpoint;
  // What the run itself reads and writes is no output.
  std::vector<std::string> inputs;
  for (const char* name :
       {"config.yaml", "metrics.jsonl", "status.json", "jobs.jsonl", "lockstep.log", "checkpoint"})
    inputs.push_back((std::filesystem::path(arguments.run_dir) / name).string());
  const report::ReportRun run = report::read_report_run(arguments.run_dir, unix_time());
  const std::string output = arguments.output.empty()
                                 ? (std::filesystem::path(arguments.run_dir) / "report.html").string()
                                 : arguments.output;
  if (arguments.output.empty()) require_plain_output(output);
  OutputFile file(output, inputs);
  file.append(html_of(report::report_page(run, limits)));
  file.publish();
  if (is_standard_output(output)) return 0;
  print_lines(report_text(run));
  print_result("{:<12}{}\n", "report", output);
  return 0;
}

}  // namespace

extern const Command kReportCommand = {
    "report", "Write one HTML file about a run: curves, network, evaluation, mistakes, jobs, checkpoints",
    "lockstep report runs/digits --output digits.html", call_with<ReportArguments, declare, run>};

}  // namespace lockstep

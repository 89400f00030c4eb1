// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep report`: one HTML file about a run. Reads the run directory, takes no lock; the run may go on.
// One process, no MPI.
#include <filesystem>

#include "core/log.h"
#include "driver/commands/commands.h"
#include "io/output_file.h"
#include "io/print_result.h"
#include "view/report/report_page.h"

namespace lockstep {

int run_command(const ReportArguments& arguments) {
  report::PredictionLimits limits;
  if (arguments.mistakes) limits = {.mistakes = *arguments.mistakes, .whatever_it_takes = true};
  // What the run itself reads and writes is no output.
  std::vector<std::string> inputs;
  for (const char* name :
       {"config.yaml", "metrics.jsonl", "status.json", "jobs.jsonl", "lockstep.log", "checkpoint"})
    inputs.push_back((std::filesystem::path(arguments.run_dir) / name).string());
  const report::ReportRun run = report::read_report_run(arguments.run_dir, unix_time());
  const std::string output = arguments.output.empty()
                                 ? (std::filesystem::path(arguments.run_dir) / "report.html").string()
                                 : arguments.output;
  OutputFile file(output, inputs);
  file.append(html_of(report::report_page(run, limits)));
  file.publish();
  if (is_standard_output(output)) return 0;
  print_result("{}", report_text(run));
  print_result("{:<12}{}\n", "report", output);
  return 0;
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep compare`: several runs side by side, as text and as one HTML file. One process, no MPI.
#include <algorithm>

#include "driver/command_line/command.h"
#include "io/output_file.h"
#include "io/print_result.h"
#include "view/report/compare_page.h"

namespace lockstep {

namespace {

struct CompareArguments {
  std::vector<std::string> run_dirs;
  std::string output;  ///< empty: text alone
  bool expect_equal = false;
};

void declare(CommandOptions& options, CompareArguments& arguments) {
  options.add("RUN", arguments.run_dirs, "Run directories, at least two")
      .required()
      .from_to_values(2, 64)
      .type_name("")
      .check(not_empty("a path"));
  options
      .add("--output", arguments.output,
           "Write an HTML file, too; - for standard output, instead of the text")
      .type_name("FILE")
      .check(not_empty("a path"));
  options.add_flag(
      "--expect-equal", arguments.expect_equal,
      "Exit code 1 if a run differs from the first one in a record, checkpoint or recorded step");
}

int run(const CompareArguments& arguments) {
  const report::Comparison comparison = report::compare_runs(arguments.run_dirs, unix_time());
  if (!arguments.output.empty()) {
    OutputFile file(arguments.output, {});
    file.append(html_of(report::compare_page(comparison)));
    file.publish();
  }
  if (!is_standard_output(arguments.output)) {
    print_lines(compare_text(comparison));
    if (!arguments.output.empty()) print_result("\nwritten to  {}\n", arguments.output);
  }
  if (!arguments.expect_equal) return 0;
  return std::ranges::any_of(comparison.partings,
                             [](const report::Parting& one) { return one.parts() || one.nothing_compared(); })
             ? 1
             : 0;
}

}  // namespace

extern const Command kCompareCommand = {
    "compare",
    "Compare runs: curves, metrics, speed, configurations, and where runs that should be equal part",
    "lockstep compare runs/a runs/b --output compared.html", call_with<CompareArguments, declare, run>};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep compare`: several runs side by side, as text and as one HTML file. One process, no MPI.
#include <algorithm>

#include "driver/commands/commands.h"
#include "io/output_file.h"
#include "io/print_result.h"
#include "view/report/compare_page.h"

namespace lockstep {

int run_command(const CompareArguments& arguments) {
  const report::Comparison comparison = report::compare_runs(arguments.run_dirs, unix_time());
  if (!arguments.output.empty()) {
    OutputFile file(arguments.output, {});
    file.append(html_of(report::compare_page(comparison)));
    file.publish();
  }
  if (!is_standard_output(arguments.output)) {
    print_result("{}", compare_text(comparison));
    if (!arguments.output.empty()) print_result("\nwritten to  {}\n", arguments.output);
  }
  if (!arguments.expect_equal) return 0;
  return std::ranges::any_of(comparison.partings,
                             [](const report::Parting& one) { return one.parts() || one.nothing_compared(); })
             ? 1
             : 0;
}

}  // namespace lockstep

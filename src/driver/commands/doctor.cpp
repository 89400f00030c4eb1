// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep doctor`: checks what a run needs of its machines, with advice. Exit code 1 if a run could not
// work.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "api/launch.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/json.h"
#include "io/print_result.h"
#include "tools/doctor/finding.h"

namespace lockstep {

namespace {

struct DoctorArguments {
  std::string folder = ".";  ///< whose disk is tried
  bool json = false;
  bool clean = false;
};

const char* name_of(Finding::State state) {
  switch (state) {
    case Finding::State::good:
      return "ok";
    case Finding::State::absent:
      return "-";
    case Finding::State::warning:
      return "warning";
    case Finding::State::failure:
      return "failure";
  }
  return "";
}

std::ptrdiff_t count_of(const Findings& findings, Finding::State state) {
  return std::ranges::count(findings, state, &Finding::state);
}

/// A line as soon as it is known: a machine that hangs shows where.
void print(const Findings& findings) {
  for (const Finding& finding : findings) {
    print_result("{:<8} {:<13} {}\n", name_of(finding.state), finding.name, finding.text);
    if (!finding.advice.empty()) print_result("{:<8} {:<13} -> {}\n", "", "", finding.advice);
  }
  std::fflush(stdout);
}

void print_json(const Findings& findings, int ranks) {
  Json list = Json::array();
  for (const Finding& finding : findings)
    list.push_back({{"state", name_of(finding.state)},
                    {"name", finding.name},
                    {"text", finding.text},
                    {"advice", finding.advice}});
  print_as_is(Json{{"ranks", ranks}, {"findings", list}}.dump(2) + "\n");
}

void declare(CommandOptions& options, DoctorArguments& arguments) {
  options
      .add("--run-dir", arguments.folder,
           "A folder of run directories, whose disk is tried; default: the current folder")
      .type_name("DIR")
      .check(not_empty("a path"));
  options.add_flag(
      "--clean", arguments.clean,
      "Remove shared memory that killed processes of yours have left on the hosts, also where processes "
      "of other containers are not seen");
  add_json(options, arguments.json);
}

int run(const DoctorArguments& arguments) {
  return run_on_ranks(
      {.timeout_seconds = 30, .start_timeout_seconds = 60}, true, [&](CommEnvironment& environment) {
        Communicator& world = environment.world();
        const bool is_chief = world.rank() == 0;
        Findings all;
        const auto add = [&](const Findings& findings) {
          all.insert(all.end(), findings.begin(), findings.end());
          if (is_chief && !arguments.json) print(findings);
        };
        add(check_versions(environment));
        add(check_cores(environment));
        add(check_memory(environment));
        add(check_messages(environment));
        add(check_gpus(environment));
        add(check_segments(environment, arguments.clean));
        if (is_chief) {
          const Findings disk = check_disk(arguments.folder);
          add(disk);
          if (count_of(disk, Finding::State::failure) == 0) add(check_hdf5(arguments.folder));
          if (arguments.json) print_json(all, world.size());
        }
        // All ranks end with the code of the chief.
        std::int32_t failures = static_cast<std::int32_t>(count_of(all, Finding::State::failure));
        world.broadcast(&failures, sizeof(failures), 0, "doctor: end");
        if (is_chief && !arguments.json) {
          const auto warnings = count_of(all, Finding::State::warning);
          print_result("\n{} rank{}: {} failure{}, {} warning{}\n", world.size(),
                       world.size() == 1 ? "" : "s", failures, failures == 1 ? "" : "s", warnings,
                       warnings == 1 ? "" : "s");
        }
        return failures == 0 ? 0 : 1;
      });
}

}  // namespace

extern const Command kDoctorCommand = {
    "doctor", "Check MPI, messages, cores, memory, disk and GPUs, each for at most two seconds, with advice",
    "mpirun -n 2 lockstep doctor --run-dir runs", call_with<DoctorArguments, declare, run>};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The commands beside a running job: `lockstep plot`, `top` and `trace` for a person at a terminal, `watch`
// as a job that evaluates its checkpoints.
#include <algorithm>

#include "driver/command_line_checks.h"
#include "driver/command_line_options.h"
#include "driver/command_line_parts.h"

namespace lockstep {

namespace {

/// "loss,eval/accuracy" is two patterns; a regular expression keeps its commas.
std::vector<std::string> split_tags(const std::vector<std::string>& given) {
  std::vector<std::string> tags;
  for (const std::string& text : given) {
    if (text.starts_with("re:")) {
      tags.push_back(text);
      continue;
    }
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t comma = std::min(text.find(',', at), text.size());
      if (comma > at) tags.push_back(text.substr(at, comma - at));
      at = comma + 1;
    }
  }
  return tags;
}

}  // namespace

void CommandLineParser::add_plot() {
  CLI::App* command = add(app_, "plot", "Draw curves of runs in the terminal, also while they go on",
                          "lockstep plot runs/digits --tag '*loss,eval/accuracy' --follow", [this] {
                            PlotArguments arguments = plot_;
                            arguments.tags = split_tags(plot_.tags);
                            return arguments;
                          });
  command->add_option("RUN_DIR", plot_.run_dirs, "Run directories, which share the charts")
      ->required()
      ->type_name("")
      ->check(not_empty("a path"));
  command
      ->add_option("--tag", plot_.tags,
                   "Patterns of tags, separated by commas: a chart for each, with all tags that match it. "
                   "Default: loss and accuracy, of training and evaluations")
      ->type_name("TAG,...")
      ->allow_extra_args(false)
      ->check(not_empty("a tag"));
  command->add_flag(
      "--follow", plot_.follow,
      "Draw anew when there are new records, until the run ends; q or Ctrl-C ends it. Without a "
      "terminal: print a line for each record");
  command->add_option("--x", plot_.x, "What is below the axis: step, epoch or hours; default: step")
      ->type_name("AXIS")
      ->check(must_be("one of step, epoch, hours", [](const std::string& text) {
        return text == "step" || text == "epoch" || text == "hours";
      }));
  command->add_flag("--log", plot_.log, "A logarithmic axis of values");
  command
      ->add_option("--smooth", plot_.smooth,
                   "Smooth with this weight for what was before, 0 to 0.999; default: 0")
      ->type_name("W")
      ->check(number(0, 0.999));
  command->add_option("--width", plot_.width, "Columns; default: those of the terminal, else 80")
      ->type_name("N")
      ->check(whole_number(20, 1000));
  command
      ->add_option("--height", plot_.height, "Lines of each chart; default: 12, or what fits with --follow")
      ->type_name("N")
      ->check(whole_number(3, 200));
  command->add_flag("--ascii", plot_.ascii,
                    "ASCII characters only; the default where the locale is not UTF-8");
}

void CommandLineParser::add_top() {
  CLI::App* command = add(app_, "top", "Show a running job: its ranks, what their time goes to, time left",
                          "lockstep top runs/digits", [this] { return top_; });
  add_target(command, "RUN_DIR", top_.run_dir, "Run directory");
  command->add_flag("--once", top_.once, "Print one picture; also without a terminal");
  command->add_option("--interval", top_.interval, "Seconds between pictures, 0.1 to 3600; default: 1")
      ->type_name("S")
      ->check(number(0.1, 3600));
  command->add_flag("--ascii", top_.ascii,
                    "ASCII characters only; the default where the locale is not UTF-8");
}

void CommandLineParser::add_watch() {
  CLI::App* command =
      add(app_, "watch", "Evaluate each new checkpoint of a run that another job trains, until it ends",
          "mpirun -n 2 lockstep watch runs/digits --throttle 300", [this] {
            WatchArguments arguments = watch_;
            arguments.overrides = overrides();
            return arguments;
          });
  add_target(command, "RUN_DIR", watch_.run_dir, "Run directory; it may appear later");
  command
      ->add_option("--name", watch_.name,
                   "The numbers go to eval_NAME of the run directory; default: continuous")
      ->type_name("NAME")
      ->check(not_empty("a name"));
  const auto seconds = [&](const char* option, double& value, const char* help) {
    command->add_option(option, value, help)->type_name("S")->check(number(0, 1e9));
  };
  seconds("--delay", watch_.delay_seconds, "Seconds before the first look; default: 0");
  seconds("--throttle", watch_.throttle_seconds,
          "Seconds from the begin of an evaluation to that of the next, at least; default: 60");
  seconds("--max-wait", watch_.most_wait_seconds,
          "Seconds without a new checkpoint that are an error; default: 7200");
  add_averages(command, watch_.averages);
  add_overrides(command);
  add_quiet(command, watch_.quiet);
}

void CommandLineParser::add_trace() {
  CLI::App* command =
      add(app_, "trace", "Summarise the profiles of a run, and merge them into one for Perfetto",
          "lockstep trace runs/digits --merge", [this] { return trace_; });
  add_target(command, "RUN_DIR", trace_.run_dir, "Run directory, with profiles of the hook 'profile'");
  command->add_flag("--merge", trace_.merge, "Write all of them to one file, on one clock");
  command->add_option("--output", trace_.output, "The file of --merge; default: RUN_DIR/profile/merged.json")
      ->type_name("FILE")
      ->check(not_empty("a path"));
}

}  // namespace lockstep

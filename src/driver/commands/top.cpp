// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep top`: a running job in the terminal, from the files in its run directory. Writes nothing, takes
// no lock.
#include <algorithm>
#include <csignal>

#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/print_result.h"
#include "view/plot/run_curves.h"
#include "view/run/run_overview.h"
#include "view/terminal/screen.h"
#include "view/top/top_view.h"

namespace lockstep {

namespace {

struct TopArguments {
  std::string run_dir;
  bool once = false, ascii = false;
  double interval = 1;  ///< seconds between pictures
};

constexpr std::size_t kSpeeds = 60;

TextStyle style_of(const TopArguments& arguments) {
  TextStyle style = style_of_output();
  if (arguments.ascii) style.unicode = false;
  return style;
}

void add_records(TopState& state, const RunCurves& curves) {
  state.epoch = curves.last_epoch();
  state.progress.step = std::max(state.progress.step, curves.last_step());  // the status is some seconds old
  for (const auto& [tag, curve] : curves.curves()) {
    if (tag == "samples_per_second") {
      const std::size_t count = std::min(kSpeeds, curve.values.size());
      state.speeds.assign(curve.values.end() - static_cast<std::ptrdiff_t>(count), curve.values.end());
    }
    if (tag == "loss") state.loss = curve.values.back();
    if (!tag.starts_with("eval/") || curve.steps.back() < state.evaluated_step) continue;
    if (curve.steps.back() > state.evaluated_step) state.evaluation.clear();
    state.evaluated_step = curve.steps.back();
    state.evaluation.emplace_back(tag.substr(5), curve.values.back());
  }
  // The loss first.
  std::ranges::stable_sort(state.evaluation, {}, [](const auto& one) { return one.first != "loss"; });
}

TopState look(const std::string& run_dir, RunCurves& curves, bool& over) {
  TopState state{.run_dir = run_dir, .now = unix_time()};
  RunOverview run = run_overview(run_dir, state.now);
  over = is_over(run.progress.state);
  state.state = run_state_text(run.progress, run.jobs.back());
  state.progress = run.progress;
  state.jobs = std::move(run.jobs);
  state.ranks = read_ranks(run_dir);
  if (state.ranks && state.ranks->job_begin != state.jobs.back().begin)
    state.ranks.reset();  // an earlier job's
  curves.update();
  add_records(state, curves);
  return state;
}

int print_once(const TopArguments& arguments, RunCurves& curves) {
  bool over = false;
  const TopState state = look(arguments.run_dir, curves, over);
  const TextStyle style = style_of(arguments);
  std::string text;
  for (const std::string& line : top_lines(state, style, false)) text += line + "\n";
  print_as_is(text);
  return 0;
}

void declare(CommandOptions& options, TopArguments& arguments) {
  add_target(options, "RUN_DIR", arguments.run_dir, "Run directory");
  options.add_flag("--once", arguments.once, "Print one picture; also without a terminal");
  options.add("--interval", arguments.interval, "Seconds between pictures, 0.1 to 3600; default: 1")
      .type_name("S")
      .check(number(0.1, 3600));
  options.add_flag("--ascii", arguments.ascii,
                   "ASCII characters only; the default where the locale is not UTF-8");
}

int run(const TopArguments& arguments) {
  RunCurves curves(arguments.run_dir);
  bool over = false;
  look(arguments.run_dir, curves,
       over);  // what is wrong with the directory is said before the terminal is taken
  if (arguments.once || over || !style_of(arguments).redraws) return print_once(arguments, curves);
  int ended_by = 0;
  {
    Screen screen;
    Screen::Event event = Screen::Event::resized;
    while (event != Screen::Event::quit && !over) {
      const TopState state = look(arguments.run_dir, curves, over);
      const TextStyle style = style_of(arguments);
      screen.draw(top_lines(state, style, true));
      if (!over) event = screen.wait(arguments.interval);
    }
    ended_by = screen.signal();
  }
  if (ended_by != 0) {
    std::signal(ended_by, SIG_DFL);
    std::raise(ended_by);
  }
  return over ? print_once(arguments, curves) : 0;
}

}  // namespace

extern const Command kTopCommand = {"top",
                                    "Show a running job: its ranks, what their time goes to, time left",
                                    "lockstep top runs/digits", call_with<TopArguments, declare, run>};

}  // namespace lockstep

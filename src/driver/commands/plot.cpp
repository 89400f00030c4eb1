// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep plot`: curves of runs in the terminal. Writes nothing, takes no lock.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iterator>
#include <optional>
#include <thread>

#include "core/shown_text.h"
#include "driver/command_line/command.h"
#include "io/print_result.h"
#include "session/number_text.h"
#include "session/progress.h"
#include "view/plot/metric_plot.h"
#include "view/plot/text_plot.h"
#include "view/run/run_overview.h"
#include "view/terminal/screen.h"

namespace lockstep {

namespace {

struct PlotArguments {
  std::vector<std::string> run_dirs;
  std::vector<std::string> tags;  ///< patterns; empty: loss and accuracy
  bool follow = false, log = false, ascii = false;
  std::string x = "step";  ///< step, epoch or hours
  double smooth = 0;
  std::optional<int> width, height;  ///< columns; lines of each chart
};

constexpr int kUsualRows = 12;
constexpr double kLookSeconds = 0.5;

TextStyle style_of(const PlotArguments& arguments) {
  TextStyle style = style_of_output();
  if (arguments.width) style.width = *arguments.width;
  if (arguments.ascii) style.unicode = false;
  return style;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

bool all_over(MetricPlots& plots) {
  for (const MetricPlots::Run& run : plots.runs())
    if (!is_over(run_overview(run.curves.run_dir(), unix_time()).progress.state)) return false;
  return true;
}

/// "runs/digits: running, step 480/1200, left 1m10s".
std::string head_of(MetricPlots& plots, const TextStyle& style) {
  TextLine line(style);
  for (const MetricPlots::Run& run : plots.runs()) {
    const RunProgress at = run_overview(run.curves.run_dir(), unix_time()).progress;
    const std::int64_t step = std::max(at.step, run.curves.last_step());
    line.add(line.columns() > 0 ? "   " : "").add(run.name, Colour::bold);
    line.add(fmt::format(" {}, step {}/{}", name_of(at.state), step, at.total_steps));
    if (at.left_seconds > 0) line.add(", left " + format_duration(at.left_seconds));
  }
  if (line.room() > 12) line.pad_to(style.width - 8).add(" q: quit", Colour::dim);
  return line.text();
}

int follow_on_screen(MetricPlots& plots, const PlotArguments& arguments) {
  int ended_by = 0;
  {
    Screen screen;
    Screen::Event event = Screen::Event::resized;
    while (event != Screen::Event::quit) {
      const bool over = all_over(plots);  // before the records: none of the last ones is missed
      for (MetricPlots::Run& run : plots.runs()) run.curves.update();
      if (over) break;
      const TextStyle style = style_of(arguments);
      std::vector<std::string> lines{head_of(plots, style)};
      std::ranges::move(plots.draw_fitted(style, style.height - 1, arguments.height),
                        std::back_inserter(lines));
      if (lines.size() == 1) lines.push_back(TextLine(style).add("no records yet").text());
      screen.draw(lines);
      event = screen.wait(kLookSeconds);
    }
    ended_by = screen.signal();
  }
  if (ended_by != 0) {
    std::signal(ended_by, SIG_DFL);
    std::raise(ended_by);
  }
  plots.check();
  const TextStyle style = style_of(arguments);
  print_as_is(joined(plots.draw(style, arguments.height.value_or(kUsualRows))));
  return 0;
}

/// "digits step 480 epoch 12 loss 0.25"; nothing if the record has no tag of the charts.
std::string line_of(const MetricPlots& plots, const MetricPlots::Run& run, const MetricRecord& record) {
  std::string text;
  for (const auto& [name, value] : record.values)
    if (const std::string tag = tag_of(record.split, name); plots.wants(tag))
      text += shown_format("  {} {}", tag, number_text(value));
  if (text.empty()) return text;
  return shown_format("{}  step {}  epoch {}{}\n", run.name, record.step, record.epoch, text);
}

int follow_as_lines(MetricPlots& plots, const PlotArguments& arguments) {
  // Those that are read already, too: a reader gets all of them.
  std::vector<RunCurves> curves;
  for (const std::string& run_dir : arguments.run_dirs) curves.emplace_back(run_dir);
  std::int64_t printed = 0;
  for (;;) {
    const bool over = all_over(plots);
    for (std::size_t i = 0; i < curves.size(); ++i)
      curves[i].update([&](const MetricRecord& record) {
        const std::string line = line_of(plots, plots.runs()[i], record);
        printed += line.empty() ? 0 : 1;
        print_lines(stdout, line);
      });
    flush_results(stdout);
    if (over) break;
    std::this_thread::sleep_for(std::chrono::duration<double>(kLookSeconds));
  }
  for (MetricPlots::Run& run : plots.runs()) run.curves.update();
  if (printed == 0) plots.check();
  return 0;
}

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

void declare(CommandOptions& options, PlotArguments& arguments) {
  options.add("RUN_DIR", arguments.run_dirs, "Run directories, which share the charts")
      .required()
      .type_name("")
      .check(not_empty("a path"));
  options
      .add("--tag", arguments.tags,
           "Patterns of tags, separated by commas: a chart for each, with all tags that match it. "
           "Default: loss and accuracy, of training and evaluations")
      .type_name("TAG,...")
      .one_value_each()
      .check(not_empty("a tag"));
  options.after_parsing([&arguments] { arguments.tags = split_tags(arguments.tags); });
  options.add_flag("--follow", arguments.follow,
                   "Draw anew when there are new records, until the run ends; q or Ctrl-C ends it. Without a "
                   "terminal: print a line for each record");
  options.add("--x", arguments.x, "What is below the axis: step, epoch or hours; default: step")
      .type_name("AXIS")
      .check(one_of_names({"step", "epoch", "hours"}));
  options.add_flag("--log", arguments.log, "A logarithmic axis of values");
  options
      .add("--smooth", arguments.smooth,
           "Smooth with this weight for what was before, 0 to 0.999; default: 0")
      .type_name("W")
      .check(number(0, 0.999));
  options.add("--width", arguments.width, "Columns; default: those of the terminal, else 80")
      .type_name("N")
      .check(whole_number(20, 1000));
  options.add("--height", arguments.height, "Lines of each chart; default: 12, or what fits with --follow")
      .type_name("N")
      .check(whole_number(3, 200));
  options.add_flag("--ascii", arguments.ascii,
                   "ASCII characters only; the default where the locale is not UTF-8");
}

int run(const PlotArguments& arguments) {
  MetricPlots plots(arguments.run_dirs, {.tags = arguments.tags,
                                         .x = arguments.x == "epoch"   ? PlotX::epoch
                                              : arguments.x == "hours" ? PlotX::hours
                                                                       : PlotX::step,
                                         .log = arguments.log,
                                         .smooth = arguments.smooth});
  const TextStyle style = style_of(arguments);
  if (arguments.follow)
    return style.redraws ? follow_on_screen(plots, arguments) : follow_as_lines(plots, arguments);
  plots.check();
  print_as_is(joined(plots.draw(style, arguments.height.value_or(kUsualRows))));
  return 0;
}

}  // namespace

extern const Command kPlotCommand = {"plot", "Draw curves of runs in the terminal, also while they go on",
                                     "lockstep plot runs/digits --tag '*loss,eval/accuracy' --follow",
                                     call_with<PlotArguments, declare, run>};

}  // namespace lockstep

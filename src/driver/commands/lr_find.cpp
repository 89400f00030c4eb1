// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep lr-find`: a learning-rate range test. Training from its beginning with a learning rate that grows
// from step to step; a table, a curve and a suggestion. It leaves no run behind.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "api/launch.h"
#include "comm/agree.h"
#include "comm/shared_error.h"
#include "core/error.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/atomic_file.h"
#include "io/json.h"
#include "io/print_result.h"
#include "run/setup/data_trial.h"
#include "tools/trial/rate_range.h"
#include "tools/trial/trial_training.h"
#include "view/plot/chart.h"
#include "view/plot/schedule_plot.h"

namespace lockstep {

namespace {

constexpr std::int64_t kLeastSteps = 10, kMostTrialSteps = 100'000, kRows = 25;

struct LrFindArguments {
  std::string config, svg, csv;
  double from = 1e-7, to = 10;
  std::int64_t steps = 100;
  std::vector<std::string> overrides;
  bool json = false, quiet = false;
};

/// The path of the option that the test changes.
std::string rate_option(const Config& config) {
  return fmt::format("optimizer.{}.learning_rate", config.optimizer.entry.name);
}

struct Found {
  std::vector<RatePoint> points;
  std::string end;  ///< why the test ended before its last step
  std::optional<SuggestedRate> suggested;
};

std::string table_text(const Found& found) {
  std::string text =
      fmt::format("{:>6}  {:>13}  {:>12}  {:>12}\n", "step", "learning rate", "loss", "smoothed");
  const auto count = std::ssize(found.points);
  const std::int64_t every = (count + kRows - 1) / kRows;
  for (std::int64_t i = 0; i < count; ++i)
    if (i % every == 0 || i + 1 == count) {
      const RatePoint& point = found.points[static_cast<std::size_t>(i)];
      text += fmt::format("{:>6}  {:>13.4g}  {:>12.6g}  {:>12.6g}\n", i + 1, point.rate, point.loss,
                          point.smoothed);
    }
  return text;
}

std::string csv_text(const Found& found) {
  std::string text = "step,learning_rate,loss,smoothed\n";
  for (std::size_t i = 0; i < found.points.size(); ++i)
    text += fmt::format("{},{},{},{}\n", i + 1, found.points[i].rate, found.points[i].loss,
                        found.points[i].smoothed);
  return text;
}

/// The smoothed loss over the rate, whose logarithm grows with the steps. What diverges is cut off.
Chart chart_of(const Found& found) {
  const double limit = 1.5 * std::abs(found.points.front().smoothed) + 1e-30;
  const RatePoint &first = found.points.front(), &last = found.points.back();
  return {.title = fmt::format("smoothed loss over the learning rate, from {:.4g} to {:.4g} in {} steps",
                               first.rate, last.rate, found.points.size()),
          .value =
              [points = found.points, limit](std::int64_t step) {
                const double value = points[static_cast<std::size_t>(step)].smoothed;
                return value < limit ? value : limit;  // NaN, too
              },
          .steps = std::ssize(found.points),
          .growing = first.rate < last.rate
                         ? std::optional(GrowingNumber{"learning rate", first.rate, last.rate})
                         : std::nullopt};
}

std::string suggestion_text(const Found& found, const std::string& option) {
  std::string text;
  if (!found.end.empty())
    text += fmt::format("ended              after step {} of the test: {}\n", found.points.size(), found.end);
  if (!found.suggested)
    return text +
           "suggestion         none: the loss falls nowhere. Try other rates (--from, --to), more --steps, "
           "or `lockstep check --overfit-batch`.\n";
  const auto [steepest, least] = *found.suggested;
  return text +
         fmt::format("least loss         {:.4g}, smoothed, at the rate {:.4g} (step {})\n",
                     found.points[least].smoothed, found.points[least].rate, least + 1) +
         fmt::format(
             "suggestion         {:.3g} (step {}): before its least value, the smoothed loss falls fastest "
             "there, per factor of the rate\n",
             found.points[steepest].rate, steepest + 1) +
         fmt::format("                   --set {}={:.3g}; the peak, if you write a schedule\n", option,
                     found.points[steepest].rate);
}

std::string json_text(const Found& found, const std::string& option) {
  Json points = Json::array();
  for (const RatePoint& point : found.points)
    points.push_back({{"learning_rate", point.rate}, {"loss", point.loss}, {"smoothed", point.smoothed}});
  Json all = {{"option", option}, {"points", points}, {"ended", found.end}};
  if (found.suggested) {
    all["suggestion"] = found.points[found.suggested->steepest].rate;
    all["least"] = found.points[found.suggested->least].rate;
  } else {
    all["suggestion"] = nullptr;
  }
  return all.dump() + "\n";
}

/// All ranks; the same result on all.
Found range_test(TrialTraining& training, std::int64_t steps) {
  Found found;
  while (std::ssize(found.points) < steps && found.end.empty()) {
    const StepResult result = training.step();
    found.points.push_back({.rate = result.learning_rate, .loss = result.loss});
    found.end = end_of_range_test(found.points);
  }
  while (!found.points.empty() && !std::isfinite(found.points.back().loss)) found.points.pop_back();
  if (found.points.empty())
    throw SharedError(Error(ErrorKind::numeric, "the loss of the first step is not finite", "lr-find",
                            "`lockstep data` shows the samples, `lockstep train` names the layer."));
  found.suggested = suggested_rate(found.points, smooth(found.points));
  return found;
}

void declare(CommandOptions& options, LrFindArguments& arguments) {
  add_target(options, "CONFIG", arguments.config, "Configuration file (YAML)");
  const auto rate = number(1e-30, 1e6);
  options.add("--from", arguments.from, "The learning rate of the first step; default: 1e-7")
      .type_name("RATE")
      .check(rate);
  options.add("--to", arguments.to, "That of the last step; default: 10").type_name("RATE").check(rate);
  options
      .add("--steps", arguments.steps,
           "Steps of the test; default: 100. It ends earlier where the loss is 4 times its least value")
      .type_name("N")
      .check(whole_number(kLeastSteps, kMostTrialSteps));
  options.add("--csv", arguments.csv, "Write the table with all steps to this file, too")
      .type_name("FILE")
      .check(not_empty("a path"));
  options.add("--svg", arguments.svg, "Write the curve to this file, too")
      .type_name("FILE")
      .check(not_empty("a path"));
  add_json(options, arguments.json, "Print JSON: all steps, and the suggestion");
  add_overrides(options, arguments.overrides);
  add_quiet(options, arguments.quiet);
  options.after_parsing([&arguments] {
    if (arguments.from >= arguments.to)
      throw usage_error("lr-find: --from is not below --to", "See: lockstep lr-find --help");
  });
}

/// Rank 0: files and standard output.
void write(const LrFindArguments& arguments, const Found& found, const std::string& option) {
  const Chart chart = chart_of(found);
  if (!arguments.csv.empty()) write_file_atomically(arguments.csv, csv_text(found));
  if (!arguments.svg.empty())
    write_file_atomically(arguments.svg,
                          svg_charts(std::vector{chart}, "Learning-rate range test of " + arguments.config));
  if (arguments.json) return print_as_is(json_text(found, option));
  print_lines(table_text(found));
  print_charts({chart});
  print_lines(suggestion_text(found, option));
}

int run(const LrFindArguments& arguments) {
  const Config written = load_config(arguments.config, arguments.overrides);
  const std::string option = rate_option(written);
  Config config = trial_config(
      written, arguments.steps,
      {fmt::format("{}={}", option, growing_rate(arguments.from, arguments.to, arguments.steps))});
  try_data_on_chief(config, {}, {.eval = false});
  return run_on_ranks({config.comm.timeout_seconds, config.comm.start_timeout_seconds}, arguments.quiet,
                      [&](CommEnvironment& environment) {
                        TrialTraining training(environment, config, arguments.steps);
                        const Found found = range_test(training, arguments.steps);
                        shared([&] {
                          agree(
                              environment.world(),
                              [&] {
                                if (training.is_chief()) write(arguments, found, option);
                              },
                              "writing the result");
                        });
                        return 0;
                      });
}

}  // namespace

extern const Command kLrFindCommand = {
    "lr-find",
    "Try growing learning rates from the beginning of training, and suggest one; leaves no run behind",
    "lockstep lr-find examples/digits.yaml\nmpirun -n 2 lockstep lr-find examples/digits.yaml --from 1e-5 "
    "--to 1 --steps 60 --svg rates.svg",
    call_with<LrFindArguments, declare, run>};

}  // namespace lockstep

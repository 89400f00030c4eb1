// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/experiment_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/named_options.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr std::string_view kSchedules[] = {"train_and_evaluate",
                                           "train",
                                           "evaluate",
                                           "continuous_train_and_eval",
                                           "continuous_eval",
                                           "continuous_eval_on_train_data",
                                           "test"};

constexpr ParamSpec kTable[] = {
    {"schedule", string, "train_and_evaluate",
     one_of("train_and_evaluate|train|evaluate|continuous_train_and_eval|continuous_eval|continuous_eval_on_"
            "train_data|test"),
     "How trainings and evaluations follow each other; --schedule of the command line comes first.",
     Change::free},
    {"min_eval_frequency", integer, "1", between(0, 1e12, "steps"),
     "train_and_evaluate: steps from one evaluation to the next, at least. Evaluations follow checkpoints: "
     "the number is rounded up to a multiple of checkpoint.every_steps; without that, an evaluation follows "
     "each checkpoint of checkpoint.every_epochs. 0: one evaluation, at the end.",
     Change::free},
    {"train_steps_per_iteration", integer, "null", between(1, 1e12, "steps").or_null(),
     "continuous_train_and_eval: steps between two evaluations. null: a tenth of train.steps, or 1000.",
     Change::free},
    {"delay_workers_by_global_step",
     boolean,
     "false",
     {},
     "Workers begin one after the other: worker i at step 8000 ln(i + 1), as cluster.worker_delay_steps: "
     "8000. "
     "Needs cluster.ps.",
     Change::free},
    {"eval_delay_seconds", real, "120", between(0, 1e9, "seconds"),
     "continuous_eval: before the first look for a checkpoint.", Change::free},
    {"throttle_seconds", real, "60", between(0, 1e9, "seconds"),
     "continuous_eval: from the begin of an evaluation to that of the next, at least.", Change::free},
    {"max_wait_seconds", real, "7200", between(0, 1e9, "seconds"),
     "continuous_eval: so long without a new checkpoint is an error, exit code 4.", Change::free},
    {"exports", node, "null", in_words("list or null"),
     "Which evaluated checkpoints are kept as folders in export/NAME of the run directory: a list of latest, "
     "best and final, each a name or {name: options}.",
     Change::free},
};

constexpr std::string_view kNameHelp = "The folder: export/NAME. null: latest, best or final.";
constexpr std::string_view kKeepHelp = "So many of the newest folders stay; 0: all.";
constexpr ParamSpec kExport[] = {
    {"name", string, "null", or_null(), kNameHelp, Change::free},
    {"keep", integer, "5", between(0, 1000000), kKeepHelp, Change::free},
};
constexpr ParamSpec kBest[] = {
    {"name", string, "null", or_null(), kNameHelp, Change::free},
    {"keep", integer, "5", between(0, 1000000), kKeepHelp, Change::free},
    {"metric",
     string,
     "loss",
     {},
     "A number of the evaluation: loss, accuracy, or a metric of eval.metrics.",
     Change::free},
    {"mode", string, "null", one_of("min|max").or_null(),
     "Whether a smaller (min) or a larger (max) value is better. null: as the metric says.", Change::free},
};
constexpr ExportEntry kExports[] = {
    {"latest", "Each evaluated checkpoint.", kExport},
    {"best", "Each evaluated checkpoint that is better than all before it.", kBest},
    {"final", "The checkpoint of the end.", kExport},
};

ExportStrategy export_strategy(const Node& item) {
  const NamedOptions named = named_options(item, "export");
  const ExportEntry& entry = find_entry<ExportEntry>(kExports, named, "export");
  const Params params(named.options, entry.table, fmt::format("export {}", named.name));
  using When = ExportStrategy::When;
  ExportStrategy strategy{.when = named.name == "best"    ? When::best
                                  : named.name == "final" ? When::final
                                                          : When::latest,
                          .name = params.has("name") ? params.string("name") : named.name,
                          .keep = static_cast<int>(params.integer("keep"))};
  if (strategy.when == When::best) {
    strategy.metric = params.string("metric");
    if (params.has("mode")) strategy.larger_is_better = params.string("mode") == "max";
  }
  if (!is_export_name(strategy.name))
    throw params.error("name", fmt::format("'{}' is no name of a folder", strategy.name),
                       "Give letters, digits, - and _.");
  return strategy;
}

}  // namespace

bool is_export_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && std::ranges::all_of(name, allowed);
}

std::span<const ExportEntry> export_table() { return kExports; }
std::span<const std::string_view> experiment_schedules() { return kSchedules; }
std::span<const ParamSpec> experiment_table() { return kTable; }

ExperimentOptions experiment_options(const Params& section) {
  ExperimentOptions options{
      .schedule = section.string("schedule"),
      .min_eval_frequency = section.integer("min_eval_frequency"),
      .train_steps_per_iteration = section.optional_integer("train_steps_per_iteration"),
      .delay_workers_by_global_step = section.boolean("delay_workers_by_global_step"),
      .eval_delay_seconds = section.real("eval_delay_seconds"),
      .throttle_seconds = section.real("throttle_seconds"),
      .max_wait_seconds = section.real("max_wait_seconds")};
  const Node& exports = section.node("exports");
  if (is_null(exports)) return options;
  if (exports.kind != Node::Kind::list)
    throw section.error("exports", "is no list",
                        "Write exports: [latest, best: {metric: accuracy, mode: max}].");
  for (const Node& item : exports.items) {
    ExportStrategy strategy = export_strategy(item);
    if (std::ranges::find(options.exports, strategy.name, &ExportStrategy::name) != options.exports.end())
      throw section.error("exports", fmt::format("two exports have the name {}", strategy.name),
                          "Give one of them another name.");
    options.exports.push_back(std::move(strategy));
  }
  return options;
}

}  // namespace lockstep

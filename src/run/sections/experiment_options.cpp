// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/sections/experiment_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/named_options.h"
#include "config/option.h"

namespace lockstep {

namespace {

constexpr std::string_view kSchedules[] = {"train_and_evaluate",
                                           "train",
                                           "evaluate",
                                           "continuous_train_and_eval",
                                           "continuous_eval",
                                           "continuous_eval_on_train_data",
                                           "test"};

/// The section as it is written.
struct Section {
  ExperimentOptions options;
  Node exports;
};
using Options = ExperimentOptions;
constexpr ParamSpec kTable[] = {
    option<&Section::options, &Options::schedule>(
        "schedule", "train_and_evaluate",
        one_of("train_and_evaluate|train|evaluate|continuous_train_and_eval|continuous_eval|continuous_eval_"
               "on_train_data|test"),
        "How trainings and evaluations follow each other; --schedule of the command line comes first.",
        Change::free),
    option<&Section::options, &Options::min_eval_frequency>(
        "min_eval_frequency", "1", between(0, 1e12, "steps"),
        "train_and_evaluate: steps from one evaluation to the next, at least. Evaluations follow "
        "checkpoints: the number is rounded up to a multiple of checkpoint.every_steps; without that, an "
        "evaluation follows each checkpoint of checkpoint.every_epochs. 0: one evaluation, at the end.",
        Change::free),
    option<&Section::options, &Options::train_steps_per_iteration>(
        "train_steps_per_iteration", "null", between(1, 1e12, "steps").or_null(),
        "continuous_train_and_eval: steps between two evaluations. null: a tenth of train.steps, or 1000.",
        Change::free),
    option<&Section::options, &Options::delay_workers_by_global_step>(
        "delay_workers_by_global_step", "false", {},
        "Workers begin one after the other: worker i at step 8000 ln(i + 1), as cluster.worker_delay_steps: "
        "8000. Needs cluster.ps.",
        Change::free),
    option<&Section::options, &Options::eval_delay_seconds>(
        "eval_delay_seconds", "120", between(0, 1e9, "seconds"),
        "continuous_eval: before the first look for a checkpoint.", Change::free),
    option<&Section::options, &Options::throttle_seconds>(
        "throttle_seconds", "60", between(0, 1e9, "seconds"),
        "continuous_eval: from the begin of an evaluation to that of the next, at least.", Change::free),
    option<&Section::options, &Options::max_wait_seconds>(
        "max_wait_seconds", "7200", between(0, 1e9, "seconds"),
        "continuous_eval: so long without a new checkpoint is an error, exit code 4.", Change::free),
    option<&Section::exports>("exports", "null", in_words("list or null"),
                              "Which evaluated checkpoints are kept as folders in export/NAME of the run "
                              "directory: a list of latest, best and final, each a name or {name: options}.",
                              Change::free),
};

using When = ExportStrategy::When;
/// An export as it is written.
struct Export {
  ExportStrategy strategy;
  std::optional<std::string> name;
};
std::optional<bool> larger_of(const Params& options, const ParamSpec& option) {
  if (!options.has(option.name)) return {};
  return options.string(option.name) == "max";
}
constexpr ParamSpec kName = option<&Export::name>(
    "name", "null", or_null(), "The folder: export/NAME. null: latest, best or final.", Change::free);
constexpr ParamSpec kKeep = option<&Export::strategy, &ExportStrategy::keep>(
    "keep", "5", between(0, 1000000), "So many of the newest folders stay; 0: all.", Change::free);
constexpr ParamSpec kEach[] = {kName, kKeep};
constexpr ParamSpec kBest[] = {
    kName,
    kKeep,
    option<&Export::strategy, &ExportStrategy::metric>(
        "metric", "loss", {}, "A number of the evaluation: loss, accuracy, or a metric of eval.metrics.",
        Change::free),
    option_as<larger_of, &Export::strategy, &ExportStrategy::larger_is_better>(
        ParamType::string, "mode", "null", one_of("min|max").or_null(),
        "Whether a smaller (min) or a larger (max) value is better. null: as the metric says.", Change::free),
};
constexpr ExportEntry kLatestExport = {"latest", "Each evaluated checkpoint.", kEach, When::latest};
constexpr ExportEntry kBestExport = {"best", "Each evaluated checkpoint that is better than all before it.",
                                     kBest, When::best};
constexpr ExportEntry kFinalExport = {"final", "The checkpoint of the end.", kEach, When::final};

ExportStrategy export_strategy(const Node& item) {
  const NamedOptions named = named_options(item, "export");
  const ExportEntry& entry = export_table().at(named);
  const Params params(named.options, entry.table, fmt::format("export {}", named.name));
  auto [strategy, name] = params.as<Export>();
  strategy.when = entry.when;
  strategy.name = name.value_or(named.name);
  if (!is_export_name(strategy.name))
    throw params.error(option_name<&Export::name>(params),
                       fmt::format("'{}' is no name of a folder", strategy.name),
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

Table<ExportEntry>& export_table() {
  static Table<ExportEntry> table("export", {&kLatestExport, &kBestExport, &kFinalExport});
  return table;
}
std::span<const std::string_view> experiment_schedules() { return kSchedules; }
std::span<const ParamSpec> experiment_table() { return kTable; }

ExperimentOptions experiment_options(const Params& section) {
  auto [options, exports] = section.as<Section>();
  if (is_null(exports)) return options;
  if (exports.kind != Node::Kind::list)
    throw section.error(option_name<&Section::exports>(section), "is no list",
                        "Write exports: [latest, best: {metric: accuracy, mode: max}].");
  for (const Node& item : exports.items) {
    ExportStrategy strategy = export_strategy(item);
    if (std::ranges::find(options.exports, strategy.name, &ExportStrategy::name) != options.exports.end())
      throw section.error(option_name<&Section::exports>(section),
                          fmt::format("two exports have the name {}", strategy.name),
                          "Give one of them another name.");
    options.exports.push_back(std::move(strategy));
  }
  return options;
}

}  // namespace lockstep

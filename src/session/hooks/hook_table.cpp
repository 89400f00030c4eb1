// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/hook_table.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>

#include "config/named_options.h"
#include "session/hooks/early_stopping_hook.h"
#include "session/hooks/logging_tensor_hook.h"
#include "session/hooks/nan_guard_hook.h"
#include "session/hooks/profiler_hook.h"
#include "session/hooks/stop_hooks.h"
#include "session/hooks/wait_for_step_hook.h"
#include "session/plugin.h"

namespace lockstep {

namespace {

using enum ParamType;

constexpr ParamSpec kStopAfterSteps[] = {{"steps", integer, kRequired, "[1, 1e12]",
                                          "Steps of this session. A resumed session counts from 0.",
                                          Change::free}};
constexpr ParamSpec kStopAfterSeconds[] = {{"seconds", real, kRequired, "(0, 1e9] seconds",
                                            "From the start of the session, by the clock of rank 0.",
                                            Change::free}};

constexpr std::string_view kMetricHelp =
    "A result of evaluations: loss, accuracy, or a metric of eval.metrics; eval/loss means the same.";
constexpr std::string_view kMinStepsHelp = "Evaluations before this step do not count.";
constexpr ParamSpec kThreshold[] = {
    {"metric", string, kRequired, "", kMetricHelp, Change::free},
    {"threshold", real, kRequired, "[-1e30, 1e30]", "The value that the metric must pass.", Change::free},
    {"min_steps", integer, "0", "[0, 1e12]", kMinStepsHelp, Change::free},
};
constexpr ParamSpec kWithoutProgress[] = {
    {"metric", string, kRequired, "", kMetricHelp},
    {"max_steps", integer, kRequired, "[1, 1e12]", "How old the best value may be.", Change::free},
    {"min_steps", integer, "0", "[0, 1e12]", kMinStepsHelp, Change::free},
};
constexpr ParamSpec kLossSpike[] = {
    {"factor", real, "3", "(1, 1e6]", "A loss above factor times the median is a spike."},
    {"window", integer, "100", "[3, 1000000] steps", "How many losses the median is computed from."},
    {"action", string, "warn", "error|stop|skip|rollback|warn",
     "error: end with exit code 1. stop: save and end. skip: skip the update of this step. rollback: go back "
     "to "
     "the last checkpoint, and on after the samples of this step. warn: log a warning."},
};
constexpr ParamSpec kLogging[] = {
    {"tensors", strings, "[loss]", "",
     "epoch, step metrics (loss, accuracy, learning_rate, loss/HEAD, gradient_norm), results of "
     "evaluations (eval/loss), or names of variables, of which mean and norm are shown.",
     Change::free},
    {"every_steps", integer, "null", "[1, 1e12] or null", "Log at multiples of so many steps.", Change::free},
    {"every_seconds", real, "null", "(0, 1e9] seconds or null", "Log when so many seconds have passed.",
     Change::free},
    {"at_end", boolean, "false", "", "Also log at the end.", Change::free},
};
constexpr ParamSpec kProfile[] = {
    {"first_step", integer, "10", "[1, 1e12]",
     "The first step of the profile. The first steps of a run are not typical.", Change::free},
    {"last_step", integer, "14", "[1, 1e12]", "The last one.", Change::free},
    {"every_steps", integer, "null", "[1, 1e12] or null",
     "Repeat the profile after so many steps. null: once.", Change::free},
};
constexpr ParamSpec kWaitForStep[] = {
    {"run_dir", string, kRequired, "", "The run directory of the other run.", Change::free},
    {"step", integer, kRequired, "[0, 1e12]", "Wait until its newest checkpoint is of this step or later.",
     Change::free},
    {"poll_seconds", real, "0.5", "(0, 10] seconds", "How often to look.", Change::free},
    {"timeout_seconds", real, "7200", "(0, 1e9] seconds",
     "How long to wait before it is an error (exit code 4).", Change::free},
};

template <typename T>
std::optional<T> optional_of(const Params& p, std::string_view name) {
  if (!p.has(name)) return std::nullopt;
  if constexpr (std::is_same_v<T, double>)
    return p.real(name);
  else
    return p.integer(name);
}

template <bool kHigher>
std::unique_ptr<Hook> make_threshold(const Params& p, const HookSetting&) {
  return std::make_unique<StopAtThresholdHook>(kHigher ? "stop_if_higher" : "stop_if_lower",
                                               p.string("metric"), kHigher, p.real("threshold"),
                                               p.integer("min_steps"));
}

template <bool kIncrease>
std::unique_ptr<Hook> make_without_progress(const Params& p, const HookSetting&) {
  return std::make_unique<StopWithoutProgressHook>(kIncrease ? "stop_if_no_increase" : "stop_if_no_decrease",
                                                   p.string("metric"), kIncrease, p.integer("max_steps"),
                                                   p.integer("min_steps"));
}

std::unique_ptr<Hook> make_profile(const Params& p, const HookSetting&) {
  const std::int64_t first = p.integer("first_step"), last = p.integer("last_step");
  const std::int64_t every = optional_of<std::int64_t>(p, "every_steps").value_or(0);
  if (last < first)
    throw p.error(option_to_blame(p, {"first_step", "last_step"}),
                  fmt::format("last_step {} is before first_step {}", last, first));
  if (every > 0 && every <= last - first)
    throw p.error(
        option_to_blame(p, {"first_step", "last_step", "every_steps"}),
        fmt::format("a profile of {} steps every {} steps overlaps itself", last - first + 1, every));
  return std::make_unique<ProfilerHook>(first, last, every);
}

std::unique_ptr<Hook> make_logging(const Params& p, const HookSetting&) {
  const HookTimer timer(optional_of<std::int64_t>(p, "every_steps"), optional_of<double>(p, "every_seconds"));
  if (timer.never() && !p.boolean("at_end"))
    throw p.error("every_steps", "neither every_steps nor every_seconds nor at_end is given",
                  "Give one of them.");
  return std::make_unique<LoggingTensorHook>(p.strings("tensors"), timer, p.boolean("at_end"));
}

constexpr std::array kTable = {
    HookEntry{"stop_after_steps", "Ends the session after so many steps, with a checkpoint.", kStopAfterSteps,
              [](const Params& p, const HookSetting&) -> std::unique_ptr<Hook> {
                return std::make_unique<StopAfterStepsHook>(p.integer("steps"));
              },
              Change::free},
    HookEntry{"stop_after_seconds", "Ends the session after so much time, with a checkpoint.",
              kStopAfterSeconds,
              [](const Params& p, const HookSetting&) -> std::unique_ptr<Hook> {
                return std::make_unique<StopAfterSecondsHook>(p.real("seconds"));
              },
              Change::free},
    HookEntry{"stop_if_higher", "Ends training when an evaluation's metric is above a threshold.", kThreshold,
              make_threshold<true>, Change::free},
    HookEntry{"stop_if_lower", "Ends training when an evaluation's metric is below a threshold.", kThreshold,
              make_threshold<false>, Change::free},
    HookEntry{"stop_if_no_increase",
              "Early stopping: ends training when a metric has not increased for too long.", kWithoutProgress,
              make_without_progress<true>, Change::free},
    HookEntry{"stop_if_no_decrease",
              "Early stopping: ends training when a metric has not decreased for too long.", kWithoutProgress,
              make_without_progress<false>, Change::free},
    HookEntry{"loss_spike", "Acts on a loss that jumps, before the variables are updated.", kLossSpike,
              [](const Params& p, const HookSetting&) -> std::unique_ptr<Hook> {
                return std::make_unique<LossSpikeHook>(p.real("factor"), p.integer("window"),
                                                       guard_action(p.string("action")));
              }},
    HookEntry{"logging", "Logs numbers and variables regularly.", kLogging, make_logging, Change::free},
    HookEntry{"profile", "Writes a trace of all ranks and threads for Perfetto.", kProfile, make_profile,
              Change::free},
    HookEntry{"wait_for_step", "Waits for a checkpoint of another run before the first step.", kWaitForStep,
              [](const Params& p, const HookSetting& setting) -> std::unique_ptr<Hook> {
                return std::make_unique<WaitForStepHook>(setting.resolved(p.string("run_dir")),
                                                         p.integer("step"), p.real("poll_seconds"),
                                                         p.real("timeout_seconds"));
              },
              Change::free},
};

struct Registry {
  std::mutex mutex;
  std::vector<HookEntry> entries;
};
Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

std::span<const HookEntry> hook_table() { return kTable; }

void register_hook(const HookEntry& entry) {
  for (const HookEntry& known : known_hooks())
    LOCKSTEP_REQUIRE(known.name != entry.name, ErrorKind::config,
                     "there is a hook with the name '{}' already", entry.name);
  const std::lock_guard lock(registry().mutex);
  registry().entries.push_back(entry);
}

std::vector<HookEntry> known_hooks() {
  std::vector<HookEntry> all(kTable.begin(), kTable.end());
  const std::lock_guard lock(registry().mutex);
  all.insert(all.end(), registry().entries.begin(), registry().entries.end());
  return all;
}

std::string HookSetting::resolved(const std::string& path) const {
  return (std::filesystem::path(base_directory) / path).lexically_normal().string();
}

std::vector<HookSpec> hooks_from_config(const Node& list, const HookSetting& setting) {
  std::vector<HookSpec> specs;
  if (is_null(list)) return specs;
  if (list.kind != Node::Kind::list)
    throw Error(ErrorKind::config, "hooks is not a list", list.where,
                "Write each hook after a dash: '- logging: {...}'.");
  const std::vector<HookEntry> known = known_hooks();
  std::vector<std::string> names;
  ErrorCollector mistakes;
  const auto add = [&](const Node& item) {
    const NamedOptions named = named_options(item, "hook");
    const HookEntry& entry = find_entry(std::span<const HookEntry>(known), named, "hook");
    specs.push_back({entry, Params(named.options, entry.table, "hook " + named.name, mistakes), named.where});
    std::string name = specs.back().make(setting)->name();
    if (std::ranges::find(names, name) != names.end())
      throw Error(ErrorKind::config, fmt::format("hook {} is listed twice", name), named.where);
    names.push_back(std::move(name));
  };
  for (const Node& item : list.items) mistakes.attempt([&] { add(item); });
  mistakes.throw_if_any();
  return specs;
}

}  // namespace lockstep

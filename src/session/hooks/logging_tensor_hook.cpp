// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/logging_tensor_hook.h"

#include <algorithm>
#include <cmath>

#include "config/option.h"
#include "config/params.h"
#include "core/name_list.h"
#include "model/variable_store.h"
#include "session/hook_context.h"
#include "session/hooks/hook_table.h"
#include "session/number_text.h"
#include "session/run_names.h"

namespace lockstep {

namespace {

constexpr std::string_view kEpoch = "epoch";

bool is_evaluated(std::string_view name) { return name != without_split(name); }

const Variable* find_variable(const VariableStore& variables, const std::string& name) {
  const auto found = std::ranges::find(variables.variables(), name, &Variable::name);
  return found == variables.variables().end() ? nullptr : &*found;
}

std::string variable_text(const VariableStore& variables, const Variable& variable) {
  const auto id = static_cast<VariableId>(&variable - variables.variables().data());
  const Tensor tensor = variables.tensor(id);
  const float* values = tensor.f32();
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
    sum += values[i];
    squares += static_cast<double>(values[i]) * values[i];
  }
  return fmt::format("mean {} norm {}",
                     number_text(sum / static_cast<double>(std::max<std::int64_t>(tensor.num_elements(), 1))),
                     number_text(std::sqrt(squares)));
}

}  // namespace

LoggingTensorHook::LoggingTensorHook(std::vector<std::string> tensors, HookTimer timer, bool at_end)
    : Hook("logging", HookScope::chief_only), tensors_(std::move(tensors)), timer_(timer), at_end_(at_end) {}

void LoggingTensorHook::check(const RunNames& names) const {
  const auto has = [](const std::vector<std::string>& list, const std::string& name) {
    return std::ranges::find(list, name) != list.end();
  };
  for (const std::string& name : tensors_) {
    if (name == kEpoch || has(names.step_metrics, name) || has(names.variables, name)) continue;
    if (is_evaluated(name) && names.evaluates(name)) continue;
    std::vector<std::string> known{std::string(kEpoch)};
    known.insert(known.end(), names.step_metrics.begin(), names.step_metrics.end());
    for (const std::string& metric : names.evaluation) known.push_back(with_split(metric));
    known.insert(known.end(), names.variables.begin(), names.variables.end());
    const std::string near = nearest(name, std::vector<std::string_view>(known.begin(), known.end()));
    throw Error(ErrorKind::config, fmt::format("there is no tensor '{}'", name), "",
                fmt::format("{}There are: {}.", near.empty() ? "" : fmt::format("Did you mean '{}'? ", near),
                            name_list(known)));
  }
}

/// For a session that was not made from a configuration. What its evaluations give is not known yet.
void LoggingTensorHook::begin(HookContext& context) {
  RunNames names;
  for (const StepMetrics::Metric& metric : context.step_metrics().metrics())
    names.step_metrics.push_back(metric.name);
  for (const Variable& variable : context.variables().variables()) names.variables.push_back(variable.name);
  for (const std::string& name : tensors_)
    if (is_evaluated(name)) names.evaluation.emplace_back(without_split(name));
  check(names);
}

void LoggingTensorHook::after_run(HookContext& context, const StepResult& result) {
  const bool first = std::exchange(first_, false) && !timer_.never();
  if (!first && !timer_.due_by_step(result.step) && !timer_.due_by_clock()) return;
  log(context);
}

void LoggingTensorHook::end(HookContext& context) {
  if (at_end_ && context.last_step().step != logged_step_) log(context);
}

std::string LoggingTensorHook::text_of(const std::string& name, HookContext& context) const {
  if (const Variable* variable = find_variable(context.variables(), name))
    return variable_text(context.variables(), *variable);
  if (name == kEpoch) return fmt::format("{}", context.last_step().epoch + 1);
  if (is_evaluated(name)) {
    const auto found = context.eval_metrics().latest(name);
    return found ? number_text(found->value) : "none yet";
  }
  const std::optional<double> value = context.step_metrics().value(name);
  return value ? number_text(*value) : "unknown";  // a step of an earlier job has no heads' losses
}

void LoggingTensorHook::log(HookContext& context) {
  std::string line = fmt::format("step {}: ", context.last_step().step);
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    line += fmt::format("{}{} = {}", i == 0 ? "" : ", ", tensors_[i], text_of(tensors_[i], context));
  if (logged_step_ >= 0) line += fmt::format(" ({:.3f} s)", since_.seconds());
  context.reports().note(line);
  since_.restart();
  timer_.done();
  logged_step_ = context.last_step().step;
}

namespace {

struct LoggingOptions {
  std::vector<std::string> tensors;
  std::optional<std::int64_t> every_steps;
  std::optional<double> every_seconds;
  bool at_end = false;
};
constexpr ParamSpec kLogging[] = {
    option<&LoggingOptions::tensors>(
        "tensors", "[loss]", {},
        "epoch, step metrics (loss, accuracy, learning_rate, loss/HEAD, gradient_norm), results of "
        "evaluations (eval/loss), or names of variables, of which mean and norm are shown.",
        Change::free),
    option<&LoggingOptions::every_steps>("every_steps", "null", between(1, 1e12).or_null(),
                                         "Log at multiples of so many steps.", Change::free),
    option<&LoggingOptions::every_seconds>("every_seconds", "null", above(0).up_to(1e9, "seconds").or_null(),
                                           "Log when so many seconds have passed.", Change::free),
    option<&LoggingOptions::at_end>("at_end", "false", {}, "Also log at the end.", Change::free),
};

std::unique_ptr<Hook> make_logging(const Params& p, const HookSetting&) {
  const auto options = p.as<LoggingOptions>();
  const HookTimer timer(options.every_steps, options.every_seconds);
  if (timer.never() && !options.at_end)
    throw p.error(option_name<&LoggingOptions::every_steps>(p),
                  "neither every_steps nor every_seconds nor at_end is given", "Give one of them.");
  return std::make_unique<LoggingTensorHook>(options.tensors, timer, options.at_end);
}

}  // namespace

extern const HookEntry kLoggingHook = {"logging", "Logs numbers and variables regularly.", kLogging,
                                       make_logging, Change::free};

}  // namespace lockstep

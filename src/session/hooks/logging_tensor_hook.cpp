// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/logging_tensor_hook.h"

#include <algorithm>
#include <cmath>

#include "session/hook_context.h"

namespace lockstep {

namespace {

constexpr std::string_view kEpoch = "epoch";

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
  return fmt::format("mean {:.4g} norm {:.4g}",
                     sum / static_cast<double>(std::max<std::int64_t>(tensor.num_elements(), 1)),
                     std::sqrt(squares));
}

}  // namespace

LoggingTensorHook::LoggingTensorHook(std::vector<std::string> tensors, HookTimer timer, bool at_end)
    : Hook("logging", HookScope::chief_only), tensors_(std::move(tensors)), timer_(timer), at_end_(at_end) {}

void LoggingTensorHook::begin(HookContext& context) {
  const VariableStore& variables = context.variables();
  const StepMetrics& metrics = context.step_metrics();
  for (const std::string& name : tensors_) {
    if (name == kEpoch || metrics.find(name) != StepMetrics::kNone ||
        find_variable(variables, name) != nullptr)
      continue;
    std::string known(kEpoch);
    for (const StepMetrics::Metric& metric : metrics.metrics()) known += ", " + metric.name;
    for (const Variable& variable : variables.variables()) known += ", " + variable.name;
    throw Error(ErrorKind::config, fmt::format("there is no tensor '{}'", name), "",
                fmt::format("There are: {}.", known));
  }
}

void LoggingTensorHook::after_run(HookContext& context, const StepResult& result) {
  const bool first = std::exchange(first_, false) && !timer_.never();
  if (!first && !timer_.due_by_step(result.step) && !timer_.due_by_clock()) return;
  log(context);
}

void LoggingTensorHook::end(HookContext& context) {
  if (at_end_ && context.last_step().step != logged_step_) log(context);
}

std::string LoggingTensorHook::text_of(const std::string& name, const HookContext& context) const {
  if (const Variable* variable = find_variable(context.variables(), name))
    return variable_text(context.variables(), *variable);
  if (name == kEpoch) return fmt::format("{}", context.last_step().epoch + 1);
  const std::optional<double> value = context.step_metrics().value(name);
  return value ? fmt::format("{:.6g}", *value) : "unknown";  // a step of an earlier job has no heads' losses
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

}  // namespace lockstep

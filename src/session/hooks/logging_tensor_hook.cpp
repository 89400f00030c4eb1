// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/logging_tensor_hook.h"

#include <algorithm>
#include <cmath>

#include "session/hook_context.h"

namespace lockstep {

namespace {

constexpr std::string_view kNumbers[] = {"loss", "accuracy", "learning_rate", "epoch"};

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

std::string norm_text(Trainer& trainer) {  // none before this job's first step
  const std::optional<ClipTotals> totals = trainer.clip_totals();
  return totals ? fmt::format("{:.6g}", totals->norm) : "unknown";
}

std::string number_text(const std::string& name, const StepResult& result, Trainer& trainer) {
  const std::span<const std::string> part_names = trainer.part_names();
  const auto part = static_cast<std::size_t>(std::ranges::find(part_names, name) - part_names.begin());
  if (part < part_names.size())  // a step that another job did has left its total alone
    return part < result.parts.size() ? fmt::format("{:.6g}", result.parts[part]) : "unknown";
  if (name == "loss") return fmt::format("{:.6g}", result.loss);
  if (name == "accuracy") return fmt::format("{:.6g}", result.accuracy);
  if (name == "gradient_norm") return norm_text(trainer);
  if (name == "learning_rate") return fmt::format("{:.6g}", result.learning_rate);
  return fmt::format("{}", result.epoch + 1);
}

}  // namespace

LoggingTensorHook::LoggingTensorHook(std::vector<std::string> tensors, HookTimer timer, bool at_end)
    : Hook("logging", HookScope::chief_only), tensors_(std::move(tensors)), timer_(timer), at_end_(at_end) {}

void LoggingTensorHook::begin(HookContext& context) {
  const VariableStore& variables = context.variables();
  const std::span<const std::string> parts = context.trainer().part_names();
  GradientClip* clip = context.trainer().gradient_clip();
  const bool measures = clip != nullptr && clip->rule().measures();
  for (const std::string& name : tensors_) {
    if (std::ranges::find(kNumbers, name) != std::end(kNumbers) || (measures && name == "gradient_norm") ||
        find_variable(variables, name) != nullptr || std::ranges::find(parts, name) != parts.end())
      continue;
    std::string known = fmt::format("{}", fmt::join(kNumbers, ", "));
    if (measures) known += ", gradient_norm";
    for (const std::string& part : parts) known += ", " + part;
    for (const Variable& variable : variables.variables()) known += ", " + variable.name;
    throw Error(ErrorKind::config, fmt::format("there is no tensor '{}'", name), "",
                fmt::format("There are: {}.", known));
  }
}

void LoggingTensorHook::after_run(HookContext& context, const StepResult& result) {
  last_ = result;
  const bool first = std::exchange(first_, false) && !timer_.never();
  if (!first && !timer_.due_by_step(result.step) && !timer_.due_by_clock()) return;
  log(context);
}

void LoggingTensorHook::end(HookContext& context) {
  if (at_end_ && last_.step != logged_step_) log(context);
}

void LoggingTensorHook::log(HookContext& context) {
  std::string line = fmt::format("step {}: ", last_.step);
  const VariableStore& variables = context.variables();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Variable* variable = find_variable(variables, tensors_[i]);
    line += fmt::format("{}{} = {}", i == 0 ? "" : ", ", tensors_[i],
                        variable != nullptr ? variable_text(variables, *variable)
                                            : number_text(tensors_[i], last_, context.trainer()));
  }
  if (logged_step_ >= 0) line += fmt::format(" ({:.3f} s)", since_.seconds());
  context.reports().note(line);
  since_.restart();
  timer_.done();
  logged_step_ = last_.step;
}

}  // namespace lockstep

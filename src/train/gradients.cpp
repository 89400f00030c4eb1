// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/gradients.h"

#include <algorithm>

#include "comm/flight_recorder.h"
#include "core/error.h"

namespace lockstep {

Gradients::Gradients(const ExecutorContext& context, float* dense, const SparseGradients* sparse)
    : context_(context), dense_(dense), sparse_(sparse), tables_(context.variables.sparse().size()) {
  for (std::size_t i = 0; i < context.variables.variables().size(); ++i) {
    const Variable& variable = context.variables.variables()[i];
    if (variable.trainable) pairs_.push_back({static_cast<VariableId>(i), &variable, {}, {}});
  }
  if (!context.device.is_host())
    host_ =
        Buffer(cpu_device(), static_cast<std::size_t>(context.variables.dense_elements()) * sizeof(float));
}

GradientAndVariable& Gradients::of(std::string_view variable) {
  const auto found =
      std::ranges::find_if(pairs_, [&](const auto& pair) { return pair.variable->name == variable; });
  if (found != pairs_.end()) return *found;
  static_cast<void>(context_.variables.find(variable));  // throws for a name that does not exist
  throw Error(ErrorKind::usage,
              fmt::format("{} has no gradient: it is frozen, or a moving statistic", variable), {},
              "`lockstep check` lists the variables.");
}

void Gradients::fetch(const StepResult& result) {
  result_ = result;
  const bool on_host = context_.device.is_host();
  if (!on_host) {
    const RecordedCall waiting("the GPU's gradients, for a change", 0);
    context_.device.copy_to_host(host_.data(), dense_, host_.size_bytes());
  }
  float* const dense = on_host ? dense_ : host_.as<float>().data();
  for (GradientAndVariable& pair : pairs_) {
    const auto elements = static_cast<std::size_t>(pair.variable->shape.num_elements());
    if (!pair.is_sparse()) {
      pair.gradient = {dense + pair.variable->offset, elements};
      continue;
    }
    const SparseRows& total = sparse_->total(pair.variable->sparse_index);
    const auto rows = static_cast<std::size_t>(*total.count);
    const std::size_t values = rows * (elements / static_cast<std::size_t>(pair.variable->shape[0]));
    pair.rows = {total.rows, rows};
    pair.gradient = {total.values, values};
    if (on_host || rows == 0) continue;
    Table& table = tables_[static_cast<std::size_t>(pair.variable->sparse_index)];
    table.rows.resize(rows);
    table.values.resize(values);
    context_.device.copy_to_host(table.rows.data(), total.rows, pair.rows.size_bytes());
    context_.device.copy_to_host(table.values.data(), total.values, pair.gradient.size_bytes());
    pair.rows = table.rows;
    pair.gradient = table.values;
  }
}

void Gradients::give_back() {
  if (context_.device.is_host()) return;
  context_.device.copy_from_host(dense_, host_.data(), host_.size_bytes());
  for (const GradientAndVariable& pair : pairs_)
    if (pair.is_sparse() && !pair.rows.empty())
      context_.device.copy_from_host(sparse_->total(pair.variable->sparse_index).values, pair.gradient.data(),
                                     pair.gradient.size_bytes());
}

}  // namespace lockstep

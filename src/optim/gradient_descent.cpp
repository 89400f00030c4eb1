// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent: w -= lr * g.
#include "optim/rule.h"

namespace lockstep {

namespace {

class GradientDescent final : public Optimizer {
 public:
  explicit GradientDescent(const Params& p) : Optimizer(make_schedule(p.node("learning_rate")), false) {}
  const char* kind() const override { return "gradient_descent"; }
  std::span<const std::string_view> slot_names() const override { return {}; }
  void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
              const float* gradients, Range range, std::int64_t step) const override {
    kernels.update.gradient_descent(lane, range.size(), variables.trainable_address() + range.first,
                                    gradients, static_cast<float>(learning_rate(step)));
  }
  void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                   const Variable& table, const SparseRows& gradient, Range rows,
                   std::int64_t step) const override {
    // A gradient of zero changes nothing.
    kernels.update.gradient_descent_rows(lane, row_update(table, gradient, rows, false),
                                         variables.trainable_address() + table.offset,
                                         static_cast<float>(learning_rate(step)));
  }
};

constexpr ParamSpec kOptions[] = {{"learning_rate", ParamType::node, kRequired, "", kRateHelp}};

}  // namespace

OptimizerEntry gradient_descent_optimizer() {
  return {"gradient_descent", "w -= lr * g", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<GradientDescent>(p); }};
}

}  // namespace lockstep

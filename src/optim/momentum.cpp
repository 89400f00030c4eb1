// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Momentum: a = momentum * a + g; w -= lr * a. Nesterov: w -= lr * (g + momentum * a).
#include "optim/rule.h"

namespace lockstep {

namespace {

class Momentum final : public Optimizer {
 public:
  explicit Momentum(const Params& p)
      : Optimizer(make_schedule(p.node("learning_rate")), p.boolean("lazy")),
        momentum_(static_cast<float>(p.real("momentum"))),
        nesterov_(p.boolean("nesterov")) {}
  const char* kind() const override { return "momentum"; }
  std::span<const std::string_view> slot_names() const override {
    static constexpr std::string_view kNames[] = {"momentum"};
    return kNames;
  }
  void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
              const float* gradients, Range range, std::int64_t step) const override {
    kernels.update.momentum(lane, range.size(), variables.trainable_address() + range.first, gradients,
                            slot(0) + range.first, static_cast<float>(learning_rate(step)), momentum_,
                            nesterov_);
  }
  void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                   const Variable& table, const SparseRows& gradient, Range rows,
                   std::int64_t step) const override {
    kernels.update.momentum_rows(lane, row_update(table, gradient, rows, !lazy()),
                                 variables.trainable_address() + table.offset, slot(0) + table.offset,
                                 static_cast<float>(learning_rate(step)), momentum_, nesterov_);
  }

 private:
  float momentum_;
  bool nesterov_;
};

constexpr ParamSpec kOptions[] = {
    {"learning_rate", ParamType::node, kRequired, "", kRateHelp},
    {"momentum", ParamType::real, "0.9", "[0, 1)", "what is kept of the accumulated gradient"},
    {"nesterov", ParamType::boolean, "false", "", "look ahead: w -= lr * (g + momentum * a)"},
    {"lazy", ParamType::boolean, "false", "", kLazyHelp},
};

}  // namespace

OptimizerEntry momentum_optimizer() {
  return {"momentum", "a = momentum * a + g; w -= lr * a", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<Momentum>(p); }};
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Adam, Kingma and Ba 2015, arXiv:1412.6980, with epsilon outside the bias correction.
#include <cmath>

#include "optim/rule.h"

namespace lockstep {

namespace {

class Adam final : public Optimizer {
 public:
  explicit Adam(const Params& p)
      : Optimizer(make_schedule(p.node("learning_rate")), p.boolean("lazy")),
        beta1_(static_cast<float>(p.real("beta1"))),
        beta2_(static_cast<float>(p.real("beta2"))),
        epsilon_(p.real("epsilon")) {
    if (!(beta1_ < 1.0F)) throw p.error("beta1", "'beta1' is 1 when rounded to float32");
    if (!(beta2_ < 1.0F)) throw p.error("beta2", "'beta2' is 1 when rounded to float32");
  }
  const char* kind() const override { return "adam"; }
  std::span<const std::string_view> slot_names() const override {
    static constexpr std::string_view kNames[] = {"m", "v"};
    return kNames;
  }
  void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
              const float* gradients, Range range, std::int64_t step) const override {
    kernels.update.adam(lane, range.size(), variables.trainable_address() + range.first, gradients,
                        slot(0) + range.first, slot(1) + range.first, alpha(step), beta1_, beta2_,
                        static_cast<float>(epsilon_));
  }
  void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                   const Variable& table, const SparseRows& gradient, Range rows,
                   std::int64_t step) const override {
    kernels.update.adam_rows(lane, row_update(table, gradient, rows, !lazy()),
                             variables.trainable_address() + table.offset, slot(0) + table.offset,
                             slot(1) + table.offset, alpha(step), beta1_, beta2_,
                             static_cast<float>(epsilon_));
  }

 private:
  /// The rate with bias correction, computed from the betas in float32 as the kernel uses them: 1 - 0.999 in
  /// float32 has a relative error of 1.3e-5.
  float alpha(std::int64_t step) const {
    const auto t = static_cast<double>(step + 1);
    return static_cast<float>(learning_rate(step) * std::sqrt(1 - std::pow(static_cast<double>(beta2_), t)) /
                              (1 - std::pow(static_cast<double>(beta1_), t)));
  }

  float beta1_, beta2_;
  double epsilon_;
};

constexpr ParamSpec kOptions[] = {
    {"learning_rate", ParamType::node, "0.001", "", kRateHelp},
    {"beta1", ParamType::real, "0.9", "[0, 1)", "decay of the first moment"},
    {"beta2", ParamType::real, "0.999", "[0, 1)", "decay of the second moment"},
    {"epsilon", ParamType::real, "1e-8", "> 0",
     "added to the root of the second moment, after bias correction of the rate"},
    {"lazy", ParamType::boolean, "false", "", kLazyHelp},
};

}  // namespace

OptimizerEntry adam_optimizer() {
  return {"adam", "Kingma and Ba 2015, with epsilon outside the bias correction", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<Adam>(p); }};
}

}  // namespace lockstep

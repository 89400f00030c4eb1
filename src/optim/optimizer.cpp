// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/optimizer.h"

#include <array>
#include <cmath>
#include <cstring>

#include "core/named_options.h"

namespace lockstep {

void Optimizer::create_slots(Device& device, const VariableStore& variables) {
  device_ = &device;
  const std::size_t bytes = static_cast<std::size_t>(variables.trainable_elements()) * sizeof(float);
  for (std::size_t i = 0; i < slot_names().size(); ++i) {
    slots_.emplace_back(device, bytes);
    if (!device.is_host()) mirrors_.push_back(Buffer::pinned(device, bytes));
  }
}

void Optimizer::reset_slots() {
  for (Buffer& slot : mirrors_.empty() ? slots_ : mirrors_) std::memset(slot.data(), 0, slot.size_bytes());
  host_is_old_ = false;
  to_device();
}

void Optimizer::to_device() {
  LOCKSTEP_CHECK(!host_is_old_, "old values would overwrite the device's");
  for (std::size_t i = 0; i < mirrors_.size(); ++i)
    device_->copy_from_host(slots_[i].data(), mirrors_[i].data(), slots_[i].size_bytes());
}

Tensor Optimizer::slot_tensor(std::size_t index, const Variable& variable) const {
  if (host_is_old_)
    for (std::size_t i = 0; i < mirrors_.size(); ++i)
      device_->copy_to_host(mirrors_[i].data(), slots_[i].data(), slots_[i].size_bytes());
  host_is_old_ = false;
  const Buffer& buffer = mirrors_.empty() ? slots_[index] : mirrors_[index];
  return {static_cast<float*>(buffer.data()) + variable.offset, DType::f32, variable.shape};
}

namespace {

RowUpdate row_update(const Variable& table, const SparseRows& gradient, Range rows, bool others) {
  return {rows.first,      rows.last,     table.shape.num_elements() / table.shape[0],
          *gradient.count, gradient.rows, gradient.values,
          others};
}

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
    // A gradient of zero moves nothing.
    kernels.update.gradient_descent_rows(lane, row_update(table, gradient, rows, false),
                                         variables.trainable_address() + table.offset,
                                         static_cast<float>(learning_rate(step)));
  }
};

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
  /// The rate with the bias correction, which is that of the betas as the kernel has them: 1 - 0.999 in
  /// float32 is 1.3e-5 off.
  float alpha(std::int64_t step) const {
    const auto t = static_cast<double>(step + 1);
    return static_cast<float>(learning_rate(step) * std::sqrt(1 - std::pow(static_cast<double>(beta2_), t)) /
                              (1 - std::pow(static_cast<double>(beta1_), t)));
  }

  float beta1_, beta2_;
  double epsilon_;
};

constexpr std::string_view kRateHelp = "a number, or a schedule with its options";
constexpr std::string_view kLazyHelp =
    "rows of tables (embeddings) that a step does not touch stay as they are, slots too";
constexpr ParamSpec kGradientDescentTable[] = {{"learning_rate", ParamType::node, kRequired, "", kRateHelp}};
constexpr ParamSpec kMomentumTable[] = {
    {"learning_rate", ParamType::node, kRequired, "", kRateHelp},
    {"momentum", ParamType::real, "0.9", "[0, 1)", "what is kept of the accumulated gradient"},
    {"nesterov", ParamType::boolean, "false", "", "look ahead: w -= lr * (g + momentum * a)"},
    {"lazy", ParamType::boolean, "false", "", kLazyHelp},
};
constexpr ParamSpec kAdamTable[] = {
    {"learning_rate", ParamType::node, "0.001", "", kRateHelp},
    {"beta1", ParamType::real, "0.9", "[0, 1)", "decay of the first moment"},
    {"beta2", ParamType::real, "0.999", "[0, 1)", "decay of the second moment"},
    {"epsilon", ParamType::real, "1e-8", "> 0",
     "added to the root of the second moment, after bias correction of the rate"},
    {"lazy", ParamType::boolean, "false", "", kLazyHelp},
};

constexpr std::array kTable = {
    OptimizerEntry{
        "gradient_descent", "w -= lr * g", kGradientDescentTable,
        [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<GradientDescent>(p); }},
    OptimizerEntry{
        "momentum", "a = momentum * a + g; w -= lr * a", kMomentumTable,
        [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<Momentum>(p); }},
    OptimizerEntry{"adam", "Kingma and Ba 2015, with epsilon outside the bias correction", kAdamTable,
                   [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<Adam>(p); }},
};

}  // namespace

std::span<const OptimizerEntry> optimizer_table() { return kTable; }

std::unique_ptr<Optimizer> make_optimizer(const Node& node) {
  const NamedOptions named = named_options(node, "optimizer");
  const OptimizerEntry& entry = find_entry(optimizer_table(), named, "optimizer");
  return entry.make(Params(named.options, entry.table, "optimizer " + named.name));
}

}  // namespace lockstep

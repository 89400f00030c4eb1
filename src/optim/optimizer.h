// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The base class of the optimization rules. An optimizer has slots, flat allocations with the layout of the
// trainable variables, and one fused update of a flat range. The bits do not depend on how the range is cut,
// so threads may share the work.
//
// Rules and defaults are those of the classic training library (docs/optimizers.md); optimizer_table.cpp says
// how to add one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.h"
#include "core/params.h"
#include "core/thread_pool.h"
#include "kernels/kernel_table.h"
#include "model/variable_store.h"
#include "optim/schedule.h"

namespace lockstep {

class Optimizer {
 public:
  /// `lazy`: see lazy().
  Optimizer(std::unique_ptr<Schedule> schedule, bool lazy) : schedule_(std::move(schedule)), lazy_(lazy) {}
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  virtual const char* kind() const = 0;
  /// Names of the slots, as in checkpoints: slots/<name>/<variable>.
  virtual std::span<const std::string_view> slot_names() const = 0;

  /// Allocates the slots, filled with their initial values.
  void create_slots(Device& device, const VariableStore& variables);
  /// Sets the slots to their initial values.
  void reset_slots();
  /// The whole slot on the device, flat like VariableStore::trainable_values().
  float* slot(std::size_t index) const { return static_cast<float*>(slots_[index].data()); }
  /// Marks the host's copy, where there is one, as outdated: the slots changed on the device.
  void device_changed() { host_is_old_ = device_ != nullptr && !device_->is_host(); }
  /// The part of a slot that belongs to a variable, in host memory, with the device's current values.
  /// to_device() copies changes back.
  Tensor slot_tensor(std::size_t index, const Variable& variable) const;
  void to_device();

  double learning_rate(std::int64_t step) const { return schedule_->rate(step); }

  /// True: a step leaves rows of a table that it does not touch, and their slots, unchanged. False: such rows
  /// are updated with a gradient of zero, as with a dense gradient.
  bool lazy() const { return lazy_; }

  /// Applies `gradients`, one per element of the flat range, to the values of the range. `step` is the global
  /// step before the update. Lanes may update disjoint ranges concurrently.
  virtual void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                      const float* gradients, Range range, std::int64_t step) const = 0;
  /// The same for the rows [first, last) of a table with a sparse gradient. The count is in host memory and
  /// read during the call; rows and values are on the device.
  virtual void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                           const Variable& table, const SparseRows& gradient, Range rows,
                           std::int64_t step) const = 0;

 private:
  std::unique_ptr<Schedule> schedule_;
  bool lazy_;
  Device* device_ = nullptr;
  std::vector<Buffer> slots_;
  std::vector<Buffer> mirrors_;  ///< pinned host copies; empty on the CPU
  mutable bool host_is_old_ = false;
};

struct OptimizerEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::unique_ptr<Optimizer> (*make)(const Params&);
};
std::span<const OptimizerEntry> optimizer_table();

/// The section `optimizer` of a configuration: a rule with its checked options.
struct OptimizerOptions {
  OptimizerEntry entry{};
  Params options;
  /// A new optimizer without slots. Throws Error(config) with position for options that do not fit together.
  std::unique_ptr<Optimizer> make() const { return entry.make(options); }
};
/// `node`: a name, or a map of one name to its options. Makes the optimizer once, so that all mistakes show.
/// Throws Error(config) with position.
OptimizerOptions optimizer_options(const Node& node);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How variables move. An optimizer has slots, flat allocations of the same layout as the trainable variables,
// and one fused update per range: any cut of the range gives the same bits, so threads and ranks may share
// the work.
//
// Rules and defaults are those of the classic training library (docs/optimizers.md). To add one: one file or
// class, one line in the table, one test with a check vector, one line in the documentation.
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
  /// Fills the slots with their initial values again.
  void reset_slots();
  /// The whole slot on the device, flat like VariableStore::trainable_values().
  float* slot(std::size_t index) const { return static_cast<float*>(slots_[index].data()); }
  /// The device has new values: the host's copy, if it is one, is old.
  void device_changed() { host_is_old_ = device_ != nullptr && !device_->is_host(); }
  /// The part of a slot that belongs to a variable, in host memory, as it is on the device now. What is
  /// written there is the device's after to_device().
  Tensor slot_tensor(std::size_t index, const Variable& variable) const;
  void to_device();

  double learning_rate(std::int64_t step) const { return schedule_->rate(step); }

  /// Rows of a table that a step does not touch stay as they are, and so do their slots. Without it they move
  /// as with a gradient of zero: the result is that of a dense gradient.
  bool lazy() const { return lazy_; }

  /// Applies `gradients`, one per element of the flat range, to the values of the range. `step` is the global
  /// step before the update. Different lanes may update different ranges at once.
  virtual void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                      const float* gradients, Range range, std::int64_t step) const = 0;
  /// The same for the rows [first, last) of a table whose gradient is sparse. Its count lies in host memory,
  /// and is read when this is called; rows and values on the device.
  virtual void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                           const Variable& table, const SparseRows& gradient, Range rows,
                           std::int64_t step) const = 0;

 private:
  std::unique_ptr<Schedule> schedule_;
  bool lazy_;
  Device* device_ = nullptr;
  std::vector<Buffer> slots_;
  std::vector<Buffer> mirrors_;  ///< in host memory; empty where that is the device's
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

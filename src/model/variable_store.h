// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All variables of a model in flat memory. The trainable ones share one allocation, in the order in which the
// backward pass finishes their gradients, so a gradient bucket is a range. The others share another: moving
// statistics, then frozen variables. A frozen variable keeps its values: it has no gradient, no slot of an
// optimizer and no regularization. A variable is a name, a shape and an offset. Offsets are multiples of 16
// elements; gaps are zero.
//
// Layers and optimizers use the values on the device, files and messages those in host memory. On the CPU
// both are the same memory. For another device the host has a copy: tensor() and the like bring it up to
// date, and to_device() copies it back after a change.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/buffer.h"
#include "core/sparse_rows.h"
#include "core/tensor.h"
#include "model/initializer.h"

namespace lockstep {

/// The number of a variable in its store.
enum class VariableId : int { none = -1 };

struct Variable {
  std::string name;  ///< a path, "conv1/kernel". It is in checkpoints: do not change it.
  Shape shape;
  bool trainable = true;  ///< has a gradient, and the optimizer updates it
  std::shared_ptr<const Initializer> initializer;
  std::int64_t offset = 0;  ///< in elements, within its allocation
  bool saved = true;        ///< false: not in checkpoints, initialised at each start
  bool is_set = false;      ///< it has values: initialised, restored or marked
  bool parameter = true;    ///< declared trainable; it is trainable unless it is frozen
  bool frozen = false;      ///< nothing changes it in training; also a moving statistic may be frozen
  /// The bound of a table of which a layer uses single rows, so that the gradient may be sparse; else without
  /// value.
  std::optional<RowBound> row_bound = {};
  int sparse_index = -1;  ///< its number among the variables with a sparse gradient, or -1
};

class VariableStore {
 public:
  static constexpr std::int64_t kAlignmentElements = 16;
  /// The elements of the flat range that a variable of `elements` elements takes.
  static constexpr std::int64_t padded(std::int64_t elements) {
    return (elements + kAlignmentElements - 1) / kAlignmentElements * kAlignmentElements;
  }

  /// Adds a variable. Call before commit(). The name must be new. Without an initializer (null) the variable
  /// must be set before the first step by a checkpoint, a warm start or the session's init_fn.
  VariableId declare(std::string name, Shape shape, std::shared_ptr<const Initializer> initializer,
                     bool trainable = true, bool saved = true);

  /// Adds a trainable table {rows, width} whose layer can write its gradient as rows (Pass::sparse_gradient).
  VariableId declare_table(std::string name, Shape shape, std::shared_ptr<const Initializer> initializer,
                           RowBound bound);
  /// From now on declare() freezes the variables that `frozen` names; null: none.
  void freeze(std::function<bool(const std::string& name)> frozen) { is_frozen_ = std::move(frozen); }
  /// Makes the variable's gradient dense, even if its layer could write it as rows. Call before commit().
  void keep_dense(VariableId id) { variables_[static_cast<std::size_t>(id)].row_bound.reset(); }
  /// Makes the table's gradient sparse. Call before commit(), which places it after all dense variables.
  void make_sparse(VariableId id);

  /// Until end_share(), declare() returns the variables [first, last) in order instead of new ones, so that
  /// `layer` uses those of `owner`. It throws Error(config) where shapes or names differ.
  void share(int first, int last, std::string layer, std::string owner);
  void end_share();

  /// Lays out and allocates the variables. Trainable ones are placed in the reverse order of declaration:
  /// layers declare in forward order, and the backward pass finishes in reverse.
  void commit(Device& device);

  /// Fills every variable with its initial values. Those without an initializer become zero and stay unset.
  void initialize(std::uint64_t seed);
  /// Records that the variable got its values in another way.
  void mark_set(VariableId id) { variables_[static_cast<std::size_t>(id)].is_set = true; }
  /// Names of the variables without values.
  std::vector<std::string> unset() const;

  std::span<const Variable> variables() const { return variables_; }
  const Variable& operator[](VariableId id) const { return variables_[static_cast<std::size_t>(id)]; }
  /// Throws Error(usage) that names the nearest one, and others, if there is no such name.
  VariableId find(std::string_view name) const;

  /// The address on the device.
  float* value(VariableId id) const;
  float* trainable_address() const { return static_cast<float*>(trainable_.data()); }
  float* others_address() const { return static_cast<float*>(others_.data()); }
  std::size_t others_bytes() const { return others_.size_bytes(); }
  /// Bytes at others_address() that a step may change; frozen variables follow them.
  std::size_t changing_bytes() const { return changing_bytes_; }
  /// Records that the values on the device have changed, so that the host's copy is out of date.
  void device_changed() { old_trainable_ = old_others_ = !device_->is_host(); }

  /// The values in host memory, as they are on the device now. Changes reach the device with to_device().
  Tensor tensor(VariableId id) const;
  /// The tables whose gradient is sparse.
  std::span<const VariableId> sparse() const { return sparse_; }
  /// Elements of the flat trainable range with a dense gradient; the sparse tables follow them.
  std::int64_t dense_elements() const { return dense_elements_; }
  /// Elements of the flat trainable range, gaps included.
  std::int64_t trainable_elements() const { return trainable_elements_; }
  std::span<float> trainable_values() const {
    return host_trainable().as<float>().first(static_cast<std::size_t>(trainable_elements_));
  }
  /// The variables that are not trained (moving statistics, then frozen ones), flat.
  std::span<float> other_values() const { return host_others().as<float>(); }
  /// Copies the values in host memory to the device.
  void to_device();
  /// Trainable elements without gaps.
  std::int64_t num_parameters() const;
  /// Elements that would be trainable if they were not frozen.
  std::int64_t num_frozen_parameters() const;
  /// Offsets at which a gradient bucket may begin or end, ascending: the starts of the variables with a dense
  /// gradient, and the end.
  std::vector<std::int64_t> cut_points() const;
  /// A hash of all values, trainable or not. The drift check compares it between ranks.
  std::uint64_t hash() const;

 private:
  const Buffer& host_trainable() const;
  const Buffer& host_others() const;

  VariableId shared(const std::string& name, const Shape& shape, bool trainable);

  struct Sharing {
    int next = 0, last = 0;
    std::string layer, owner;
  };
  std::optional<Sharing> sharing_;
  std::function<bool(const std::string&)> is_frozen_;
  std::vector<Variable> variables_;
  std::unordered_map<std::string, VariableId> id_of_name_;
  Device* device_ = nullptr;
  Buffer trainable_, others_;
  Buffer trainable_mirror_, others_mirror_;  ///< copies in host memory; empty if that is the device's memory
  mutable bool old_trainable_ = false, old_others_ = false;  ///< the host's copy is out of date
  std::int64_t trainable_elements_ = 0, dense_elements_ = 0;
  std::size_t changing_bytes_ = 0;
  std::vector<VariableId> sparse_;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All variables of a model, flat: trainable ones in one allocation, in the order in which backward finishes
// their gradients (so a gradient bucket is a range), the others (moving statistics) in another. A variable is
// a name, a shape and an offset. Offsets are multiples of 16 elements; the gaps are zero and stay zero.
//
// Layers and optimizers work on the values on the device; files and messages on those in host memory. On the
// CPU both are the same memory. On another device the host has a copy: reading it brings it up to date, and
// who has written to it says to_device().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.h"
#include "core/sparse_rows.h"
#include "core/tensor.h"
#include "model/initializer.h"

namespace lockstep {

/// A handle: the number of a variable in its store.
enum class VariableId : int { none = -1 };

struct Variable {
  std::string name;  ///< a path: "conv1/kernel". In checkpoints: do not change.
  Shape shape;
  bool trainable = true;
  std::shared_ptr<const Initializer> initializer;
  std::int64_t offset = 0;  ///< elements, within its allocation
  bool saved = true;        ///< false: local to a session; initialised each time, not in checkpoints
  bool is_set = false;      ///< has values: initialised, restored, or marked
  /// A table whose rows a layer uses one by one: its gradient may be sparse. Nothing for other variables.
  std::optional<RowBound> row_bound = {};
  int sparse_index = -1;  ///< its number among those whose gradient is sparse, or -1
};

class VariableStore {
 public:
  static constexpr std::int64_t kAlignmentElements = 16;
  /// What a variable of so many elements takes of the flat range.
  static constexpr std::int64_t padded(std::int64_t elements) {
    return (elements + kAlignmentElements - 1) / kAlignmentElements * kAlignmentElements;
  }

  /// Before commit(). Names must be new. Without an initializer (null), something else must set it before the
  /// first step: a checkpoint, a warm start, the session's init_fn.
  VariableId declare(std::string name, Shape shape, std::shared_ptr<const Initializer> initializer,
                     bool trainable = true, bool saved = true);

  /// A trainable table {rows, width} whose layer can give its gradient as rows (Pass::sparse_gradient).
  VariableId declare_table(std::string name, Shape shape, std::shared_ptr<const Initializer> initializer,
                           RowBound bound);
  /// Before commit(): the variable's gradient is dense, even if its layer could give it as rows.
  void keep_dense(VariableId id) { variables_[static_cast<std::size_t>(id)].row_bound.reset(); }
  /// Before commit(): the table's gradient is to be sparse. It then lies behind all dense variables.
  void make_sparse(VariableId id);

  /// From here to end_share(), declare() gives the variables [first, last), in order, instead of new ones:
  /// `layer` uses those of `owner`. Throws Error(config) where shapes or names differ.
  void share(int first, int last, std::string layer, std::string owner);
  void end_share();

  /// Lays out and allocates. Trainable variables are placed in the reverse order of their declaration: layers
  /// declare in forward order, backward finishes in reverse.
  void commit(Device& device);

  /// Fills every variable with its initial values; those without an initializer are zero, and not set.
  void initialize(std::uint64_t seed);
  /// The variable's values were given in another way.
  void mark_set(VariableId id) { variables_[static_cast<std::size_t>(id)].is_set = true; }
  /// Names of the variables that have no values yet.
  std::vector<std::string> unset() const;

  std::span<const Variable> variables() const { return variables_; }
  const Variable& operator[](VariableId id) const { return variables_[static_cast<std::size_t>(id)]; }
  /// VariableId::none if there is no such name.
  VariableId find(std::string_view name) const;

  /// On the device.
  float* value(VariableId id) const;
  float* trainable_address() const { return static_cast<float*>(trainable_.data()); }
  float* others_address() const { return static_cast<float*>(others_.data()); }
  std::size_t others_bytes() const { return others_.size_bytes(); }
  /// The device has new values: the host's are old.
  void device_changed() { old_trainable_ = old_others_ = !device_->is_host(); }

  /// In host memory, as they are on the device now. What is written there is the device's after to_device().
  Tensor tensor(VariableId id) const;
  /// The tables whose gradient is sparse.
  std::span<const VariableId> sparse() const { return sparse_; }
  /// Elements of the flat trainable range before the sparse tables: what has a dense gradient.
  std::int64_t dense_elements() const { return dense_elements_; }
  /// Elements of the flat trainable range, gaps included.
  std::int64_t trainable_elements() const { return trainable_elements_; }
  std::span<float> trainable_values() const {
    return host_trainable().as<float>().first(static_cast<std::size_t>(trainable_elements_));
  }
  /// The variables that are not trained (running statistics), flat.
  std::span<float> other_values() const { return host_others().as<float>(); }
  /// Brings what was written in host memory to the device.
  void to_device();
  /// Number of true parameters: trainable elements without gaps.
  std::int64_t num_parameters() const;
  /// Offsets at which a bucket may be cut: the starts of the variables with a dense gradient, ascending, and
  /// the end.
  std::vector<std::int64_t> cut_points() const;
  /// A hash of all values, trainable or not: what the drift check compares.
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
  std::vector<Variable> variables_;
  Device* device_ = nullptr;
  Buffer trainable_, others_;
  Buffer trainable_mirror_, others_mirror_;  ///< in host memory; empty where that is the device's
  mutable bool old_trainable_ = false, old_others_ = false;  ///< in the host's copies
  std::int64_t trainable_elements_ = 0, dense_elements_ = 0;
  std::vector<VariableId> sparse_;
};

}  // namespace lockstep

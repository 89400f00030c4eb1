// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All variables of a model, flat: trainable ones in one allocation, in the order in which backward finishes
// their gradients (so a gradient bucket is a range), the others (moving statistics) in another. A variable is
// a name, a shape and an offset. Offsets are multiples of 16 elements; the gaps are zero and stay zero.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/buffer.h"
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
};

class VariableStore {
 public:
  static constexpr std::int64_t kAlignmentElements = 16;

  /// Before commit(). Names must be new. Without an initializer (null), something else must set it before the
  /// first step: a checkpoint, a warm start, the session's init_fn.
  VariableId declare(std::string name, Shape shape, std::shared_ptr<const Initializer> initializer,
                     bool trainable = true, bool saved = true);

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

  float* value(VariableId id) const;
  Tensor tensor(VariableId id) const { return {value(id), DType::f32, (*this)[id].shape}; }
  /// Elements of the flat trainable range, gaps included.
  std::int64_t trainable_elements() const { return trainable_elements_; }
  std::span<float> trainable_values() const {
    return trainable_.as<float>().first(static_cast<std::size_t>(trainable_elements_));
  }
  /// The variables that are not trained (running statistics), flat.
  std::span<float> other_values() const { return others_.as<float>(); }
  /// Number of true parameters: trainable elements without gaps.
  std::int64_t num_parameters() const;
  /// Offsets at which a bucket may be cut: the starts of the trainable variables, ascending, and the end.
  std::vector<std::int64_t> cut_points() const;
  /// A hash of all values, trainable or not: what the drift check compares.
  std::uint64_t hash() const;

 private:
  std::vector<Variable> variables_;
  Buffer trainable_, others_;
  std::int64_t trainable_elements_ = 0;
};

}  // namespace lockstep

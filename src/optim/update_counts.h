// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How often the variables of a rule were updated: the t of docs/optimizers.md. A step whose update is left
// out does not count, nor does one in which the variable was frozen. Variables with the same number of
// updates form a class, for which the rule computes the numbers of a step once. In most runs there is one
// class.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/range.h"
#include "core/tensor.h"
#include "model/variable_store.h"

namespace lockstep {

/// The updates that some variables had, all of them in the same steps.
struct UpdateClass {
  std::int64_t updates = 0;          ///< from begin_step() on with that of the step: t
  std::vector<double> numbers = {};  ///< what the rule computes from one update to the next, such as products

  friend bool operator==(const UpdateClass&, const UpdateClass&) = default;
};

class UpdateCounts {
 public:
  /// `own`: the variables of the rule, in the order of the flat range. No updates yet; `initial`: the numbers
  /// before the first one.
  void set_variables(const VariableStore& variables, std::span<const VariableId> own,
                     std::vector<double> initial);
  /// No updates yet.
  void reset();
  const UpdateClass& initial() const { return initial_; }

  /// At least one. Their number changes in reset() and set() only.
  std::span<UpdateClass> classes() { return classes_; }
  std::span<const UpdateClass> classes() const { return classes_; }
  /// The number of the class of the variable at this element of the flat range.
  std::size_t class_at(std::int64_t element) const {
    if (classes_.size() == 1) return 0;
    return std::ranges::upper_bound(segments_, element, {}, &Segment::last)->number;
  }
  const UpdateClass& of(const Variable& variable) const { return classes_[class_at(variable.offset)]; }
  void set(const Variable& variable, const UpdateClass& updates);

  /// Calls then(part, number of its class) for the parts of a range with elements of the rule's variables.
  template <typename Then>
  void for_each_part(Range range, const Then& then) const {
    if (classes_.size() == 1) return then(range, std::size_t{0});
    auto segment = std::ranges::upper_bound(segments_, range.first, {}, &Segment::last);
    for (std::int64_t first = range.first; first < range.last; ++segment) {
      const std::int64_t last = std::min(segment->last, range.last);
      then(Range{first, last}, segment->number);
      first = last;
    }
  }

  /// A copy of `of(variable)` in one tensor, float64: the updates, then the numbers. Valid until the next
  /// call for this variable.
  Tensor tensor(const Variable& variable) const;

 private:
  /// The flat range from the end of the segment before to `last`.
  struct Segment {
    std::int64_t last;
    std::size_t number;  ///< of the class
  };
  struct Own {
    std::int64_t offset;
    std::size_t number;  ///< of the class
    mutable std::vector<double> copied = {};
  };
  std::size_t place_of(const Variable& variable) const;
  void divide();

  UpdateClass initial_;
  std::vector<UpdateClass> classes_ = {{}};
  std::vector<Own> own_;           ///< by offset
  std::vector<Segment> segments_;  ///< ascending; the last one has no end
};

}  // namespace lockstep

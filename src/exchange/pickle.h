// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to exchange: the part of Python's pickle language that PyTorch writes for a state dict, as data.
// Nothing is imported, called or executed. Anything but the few names of pickle.cpp, and what is made of it,
// is a value of kind `foreign`, which has nothing in it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/input_budget.h"

namespace lockstep {

/// A value of a pickle. Values belong to their Pickle, so that no nesting and no cycle can exhaust a stack.
struct PickleValue {
  enum class Kind { nothing, integer, real, text, tuple, list, dict, name, storage, tensor, foreign };
  Kind kind = Kind::nothing;
  std::int64_t integer = 0;         ///< also true and false
  std::string text;                 ///< also of a name: "torch.FloatStorage"; of foreign: what it names
  std::vector<PickleValue*> items;  ///< of tuple and list; of storage and tensor: what made it
  std::vector<std::pair<PickleValue*, PickleValue*>> pairs;  ///< of dict
};

class Pickle {
 public:
  /// Reads a whole pickle, whose values take from `budget`. `where` is for messages. Throws Error(data) that
  /// names what is refused.
  Pickle(std::string_view bytes, InputBudget& budget, const std::string& where);
  /// What the pickle holds.
  const PickleValue& root() const { return *root_; }
  /// The first foreign name; empty: none.
  const std::string& foreign_name() const { return foreign_name_; }

 private:
  friend class PickleReader;
  std::vector<std::unique_ptr<PickleValue>> values_;
  PickleValue* root_ = nullptr;
  std::string foreign_name_;
};

}  // namespace lockstep

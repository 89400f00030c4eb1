// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which tensor of a file each variable of a model takes. Names and shapes only. A mapping goes from the model
// to the file, as warm_start.rename does.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exchange/foreign_tensor.h"
#include "session/rename_map.h"

namespace lockstep {

/// A variable of the model.
struct WantedVariable {
  std::string name;
  std::vector<std::int64_t> extents;
};

/// A mapping, ready to be asked.
class ImportMap {
 public:
  ImportMap() = default;
  /// Throws Error(usage) for an invalid rule.
  explicit ImportMap(const RenameMap& map);
  bool leaves_out(const std::string& variable) const;
  std::string renamed(const std::string& variable) const { return rules_.renamed(variable); }
  /// The left sides that match none of `names`.
  std::vector<std::string> unused(const std::vector<std::string>& names) const;

 private:
  NameRules rules_;
  NamePatterns left_out_;
  bool leaves_out_some_ = false;
};

struct ImportPlan {
  enum class State {
    taken,        ///< by its name or by the mapping
    proposed,     ///< nothing else in the file ends as alike with this shape
    other_shape,  ///< `tensors` has the one of its name, which has another shape
    left_out,     ///< by the mapping
    ambiguous,    ///< `tensors` are equally good
    missing       ///< no tensor is like it
  };
  struct Line {
    State state = State::missing;
    std::string from;                  ///< the name that is looked for in the file
    std::vector<std::size_t> tensors;  ///< taken, proposed, other_shape: one
    int alike = 0;  ///< proposed: how many parts of the layers' names are the same at their ends
  };
  std::vector<Line> lines;          ///< by variable
  std::vector<std::size_t> unused;  ///< tensors that no variable takes
};

/// Tensors by their names: a variable takes the tensor that the mapping, or else its own name, says. That may
/// be the tensor's name in Lockstep's form ("fc/kernel") or as it is in the file ("fc.weight").
ImportPlan plan_import(std::span<const ImportedTensor> tensors, std::span<const WantedVariable> wanted,
                       const ImportMap& map);

/// plan_import(), and proposals for what is missing then. Whole layers are compared: the ends of their names,
/// longest first, and among layers that end alike their variables and shapes. A layer gets a proposal if it
/// is the only one on its side; anything else stays ambiguous. With `by_order` the file numbers the layers of
/// a class in their order (Keras), which then decides between equals in place of names.
ImportPlan propose_import(std::span<const ImportedTensor> tensors, std::span<const WantedVariable> wanted,
                          const ImportMap& map, bool by_order);

}  // namespace lockstep

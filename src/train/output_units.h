// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The units of a head's numbers. A model is trained on targets after their normalisation, whitening and
// transforms; what it predicts is in these units, and people want those of the data (target_units.h). Also
// the names of the numbers: of columns of a table, or of targets.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/range.h"

namespace lockstep {

class Dataset;
class Heads;
class TargetUnits;
struct DatasetPart;
struct Head;

class OutputUnits {
 public:
  /// No names, and no other units.
  OutputUnits() = default;
  /// Of a head. `data`: a set whose targets are normalised; the training set, or another one with its
  /// numbers.
  OutputUnits(const Dataset& data, const Heads& heads, int head);

  /// The outputs of the model are in other units than the data.
  bool changes() const { return of_outputs_ && changes_labels(); }
  /// The labels that the model gets are. There may be another number of outputs than of labels.
  bool changes_labels() const { return !linear_.empty() || !pieces_.empty(); }
  /// Why some outputs, or all, stay as the model is trained on them: "price: the transform standardize has no
  /// inverse"; empty: none do.
  const std::string& problem() const { return problem_; }
  /// From the model's units to those of the data, in double, in place; whole samples, of outputs or labels.
  void to_data(std::span<float> rows) const;
  /// The other way round.
  void to_model(std::span<float> rows) const;
  /// The name of each output of a sample: "price"; empty: they have none.
  const std::vector<std::string>& names() const { return names_; }

 private:
  struct Linear {
    double scale = 1, shift = 0;  ///< data = model * scale + shift
  };
  /// Of a target whose way back is longer.
  struct Piece {
    std::shared_ptr<const TargetUnits> units;
    Range own;       ///< numbers of the target
    std::size_t at;  ///< of the first of them in a row
  };
  /// Replaces the numbers of whole samples that are linear ones.
  template <typename Convert>
  void each_number(std::span<float> rows, Convert convert) const;
  void add_target(const DatasetPart& target, const Head& head, Range own, std::int64_t at);

  std::size_t numbers_ = 0;     ///< of a sample's labels
  std::vector<Linear> linear_;  ///< of each of them; empty: they are the data's, or of a piece
  std::vector<Piece> pieces_;
  std::string problem_;
  std::vector<std::string> names_;
  bool of_outputs_ = false;  ///< an output for each label
};

/// Of all heads.
std::vector<OutputUnits> output_units(const Dataset& data, const Heads& heads);

}  // namespace lockstep

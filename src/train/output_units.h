// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The units of a head's numbers. A model is trained on targets after their scale, offset, mean, std and
// normalisation; what it predicts is in these units, and people want those of the data. Also the names of the
// numbers: of columns of a table, or of targets.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace lockstep {

class Dataset;
class Heads;

class OutputUnits {
 public:
  /// No names, and no other units.
  OutputUnits() = default;
  /// Of a head. `data`: a set whose targets are normalised; the training set, or another one with its
  /// numbers.
  OutputUnits(const Dataset& data, const Heads& heads, int head);

  /// The outputs of the model are in other units than the data.
  bool changes() const { return of_outputs_ && !scale_.empty(); }
  /// The labels that the model gets are. There may be another number of outputs than of labels.
  bool changes_labels() const { return !scale_.empty(); }
  /// From the model's units to those of the data, in double, in place; whole samples, of outputs or labels.
  void to_data(std::span<float> rows) const;
  /// The other way round.
  void to_model(std::span<float> rows) const;
  /// The name of each output of a sample: "price"; empty: they have none.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<double> scale_, shift_;  ///< by number of a sample: data = model * scale + shift
  std::vector<std::string> names_;
  bool of_outputs_ = false;  ///< an output for each label
};

/// Of all heads.
std::vector<OutputUnits> output_units(const Dataset& data, const Heads& heads);

}  // namespace lockstep

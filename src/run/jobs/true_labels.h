// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The true labels of an input of `lockstep predict`, as its file of predictions holds them: those of the
// data, in the columns that each head reads and in the units of the data. They are written as they are: not
// checked against the loss, not replaced by a label table. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "io/prediction_file.h"
#include "model/heads.h"
#include "train/output_units.h"

namespace lockstep {

class TrueLabels {
 public:
  /// References outlive this. Throws Error(data) if `input` has another number of label columns than the data
  /// that the model was trained on.
  TrueLabels(const Dataset& input, const Dataset& trained, const Heads& heads);

  /// Sets number and type of a head's labels; 0 without labels.
  void describe(int head, PredictedHead& described) const;
  /// Gathers the labels of samples of the input.
  void gather(std::span<const std::int64_t> samples);
  /// Sets the labels of the gathered batch. Valid until the next gather().
  void set(int head, PredictedRows& rows) const;

 private:
  struct OfHead {
    std::int64_t first = 0, last = 0;  ///< label columns; equal: none
    bool as_indices = false;
    std::vector<std::int32_t> indices;
    std::vector<float> values;
  };

  const Dataset& input_;
  std::vector<OfHead> heads_;
  std::vector<OutputUnits> units_;         ///< by head
  std::vector<std::int32_t> all_indices_;  ///< of all columns
  std::vector<float> all_values_;
};

}  // namespace lockstep

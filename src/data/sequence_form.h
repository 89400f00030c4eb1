// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Samples that are sequences of different lengths, in rows of one number of steps. The first axis of a sample
// counts its steps. What follows a sequence's last step is padding, which the stored values tell from data.
//
// Padding is stored as float32 NaN, which no data has: readers refuse it. So a stored sample tells its own
// length, with no further array in stores, streams, blocks, fingerprints and lists of good samples, and
// sequences of whole numbers are kept as float32, too. NaN passes through scale, mean and std, and becomes
// pad_value where the batch is made; statistics stop at it. Lengths reach the model as an input of their own,
// from the same reader; no layer knows of masks. Labels per step are a target whose padding is the
// ignore_index of the loss.
#pragma once

#include <cstdint>
#include <vector>

#include "core/dtype.h"
#include "core/shape.h"

namespace lockstep {

class Dataset;

struct SequenceForm {
  /// How the steps after the end are stored. nan: float32 NaN, which no data has; they become `padding` when
  /// a batch is made. zeros: token ids, of which `padding` is none of a text (0 but for bpe); they stay.
  enum class Mark { nan, zeros };
  Mark mark = Mark::nan;
  float padding = 0;  ///< nan: after scaling and normalisation
  bool ends_in_nan() const { return mark == Mark::nan; }
  friend bool operator==(const SequenceForm&, const SequenceForm&) = default;
};

/// The steps of one stored sample of this shape and type before its padding.
std::int64_t sequence_length(const SequenceForm& form, const Shape& shape, DType type, const void* sample);

/// The length of each sample; of a joined set, in its first input of sequences. Reads a set that is not in
/// memory once, block by block. Throws Error(data) if the samples are no sequences of different lengths.
std::vector<std::int32_t> sequence_lengths(const Dataset& data);

}  // namespace lockstep

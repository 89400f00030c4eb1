// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Mean and standard deviation of a training set, which normalise its features and those of all other sets of
// the run: (x - mean) / std, after scale and offset, before transforms.
//
// The chosen samples are cut into parts that depend on their number only. A part is summed in double, sample
// by sample; parts are merged along a binary tree with Chan's formula. So the result has the same bits
// whoever computes which part. Chan, Golub, LeVeque: Algorithms for computing the sample variance, 1983.
//
// Unlike lists of a table's values, which training reads from the data again, the numbers are kept for later
// jobs, in the run directory and in checkpoints (session/kept_data.h): they depend on every value, and a pass
// over a large set is expensive. They are no part of the configuration, which a run compares when it
// continues.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/normalize_by.h"

namespace lockstep {

class ReaderDataset;
class SampleChoice;

class NormalizationSums {
 public:
  /// Of the set's NormalizeBy, which is not none, over the samples that `choice` takes (null: all). Both must
  /// live as long as this. `data` is not normalised yet.
  NormalizationSums(const ReaderDataset& data, const SampleChoice* choice);

  std::int64_t num_samples() const;
  int num_parts() const { return num_parts_; }
  /// Channels or elements with statistics of their own, or 1.
  std::int64_t num_statistics() const { return channels_; }
  /// Numbers that describe one part.
  std::int64_t values_per_part() const { return values_of(channels_); }
  /// Numbers that describe so many channels of a part.
  static constexpr std::int64_t values_of(std::int64_t channels) { return 1 + 2 * channels; }
  /// Any thread.
  void compute(int part, std::span<double> out) const;
  /// The numbers of channels [first, first + count) of each of `parts`, which compute() gave.
  void select(std::span<const double> parts, std::int64_t first, std::int64_t count,
              std::span<double> out) const;
  /// Adds the results of the next channels to `to`. `parts`: select() of these channels of all parts, one
  /// after the other. They are used up. Throws Error(data) for values beyond float32.
  void add_merged(std::span<double> parts, std::int64_t count, Normalization& to) const;

 private:
  const ReaderDataset& data_;
  const SampleChoice* const choice_;
  const std::int64_t values_;    ///< of a sample
  const std::int64_t channels_;  ///< with statistics of their own
  int num_parts_;
};

/// All of it on this process, with `threads` threads.
Normalization computed_normalization(const ReaderDataset& data, const SampleChoice* choice, int threads);

/// A line "mean <tab> std" per channel; exact. Of elements: a .npy file of float32 {2, extents of a sample}.
std::string normalization_text(const Normalization& values);
/// Reads both. Throws Error(data) at `where` for a text of another form.
Normalization normalization_from_text(std::string_view text, const std::string& where);

}  // namespace lockstep

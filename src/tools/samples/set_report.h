// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep data` finds in one set, or one input or target of it, for its text and its JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/reader_dataset.h"
#include "tools/samples/sample_statistics.h"

namespace lockstep {

struct SetReport {
  bool training = true;
  std::string name;  ///< of the input or target; empty: the only one
  bool is_target = false;
  std::int64_t first = 0;                        ///< the first sample that is used
  std::vector<std::string> names;                ///< of the values of a sample (feature_names.h), or empty
  std::int64_t chosen = 0;                       ///< samples that are used
  std::int64_t looked_at = 0;                    ///< samples
  std::vector<std::string> notes;                ///< on values (value_notes.h)
  FeatureStatistics stored;                      ///< scaled and normalised, before the transforms
  std::optional<FeatureStatistics> transformed;  ///< empty: there are no transforms
  bool reads_labels = false;                     ///< its labels are the labels of the set
  std::optional<LabelStatistics> labels;         ///< empty: it has none
  double samples_per_second = 0;                 ///< of one thread, without transforms
  std::optional<double> transformed_per_second;  ///< with them
  std::optional<double> unpacked_per_second;     ///< of compressed chunks, by one core; empty: none
};

/// The class of an index, or the index.
std::string class_name(const Dataset& data, std::int64_t label);

/// Prints a report on standard output. `samples`: those that were looked at.
void print_text(const ReaderDataset& data, const SetReport& report, std::span<const std::int64_t> samples);
/// An object of JSON.
std::string json_text(const ReaderDataset& data, const SetReport& report);
/// The whole output of --json: the objects of all sets, and what looks wrong.
std::string json_text(std::span<const std::string> sets, std::span<const std::string> findings);

}  // namespace lockstep

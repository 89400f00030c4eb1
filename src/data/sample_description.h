// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a model must know of its training set to be used without it: the shape and type of a sample, its
// labels, names of classes, columns of a table, words. A run keeps it in its checkpoints as samples.json; the
// numbers of data.normalize and data.whiten are kept next to it. On-disk names: do not change.
//
//   {"format": "lockstep samples", "version": 1, "samples": 1437, "parts": [
//     {"name": "", "shape": [8, 8, 1], "type": "u8", "labels": "indices", "label_columns": 1,
//      "classes": ["cat", ...], "sequence": {...}, "table": {...}, "text": {...}}, ...]}
//
// There is a part for each input, then for each target. A text that is not UTF-8 is an array of its bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset_parts.h"

namespace lockstep {

class Dataset;
struct DataOptions;

struct SampleDescription {
  struct Part {
    std::string name;  ///< of the input or target; empty: the only input
    Shape shape;       ///< of a stored sample
    DType type = DType::f32;
    LabelKind labels = LabelKind::none;
    std::int64_t label_columns = 0;
    std::vector<std::string> class_names;
    std::optional<SequenceForm> sequence;
    std::shared_ptr<const TableInfo> table;  ///< without keys; null: the files are no tables
    std::shared_ptr<const TextInfo> text;    ///< of the reader or a transform; null: no text
    bool reads_text = false;                 ///< `text` is the reader's
  };
  std::int64_t samples = 0;
  std::vector<Part> parts;

  /// The description has a part for each of sets_of(options), in their order.
  bool fits(const DataOptions& options) const;
  /// One sample of a part, whose values are 0.
  DatasetParts empty_sample(std::size_t part) const;
};

/// The name of the description among the kept files of a run.
inline constexpr std::string_view kSampleDescription = "samples.json";

/// The text of a training set's description.
std::string sample_description_text(const Dataset& data);
/// Reads it. Throws Error(checkpoint) at `where`.
SampleDescription sample_description(std::string_view text, const std::string& where);

}  // namespace lockstep

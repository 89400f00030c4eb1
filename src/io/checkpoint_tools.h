// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Operations on whole checkpoints: differences, averages, files that contain only weights. One process, no
// run.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint.h"
#include "io/checkpoint_names.h"

namespace lockstep {

/// Opens `path`, or the newest intact checkpoint in it if it is a run directory; warns about damaged ones.
/// Throws Error(checkpoint) if there is none.
CheckpointFile open_checkpoint_at(const std::string& path);

/// A tensor in two checkpoints.
struct TensorDifference {
  enum class Kind { equal, values, shape, only_first, only_second };
  std::string path;
  Kind kind = Kind::equal;
  std::string detail;                        ///< shape: both shapes and types
  std::int64_t num_different = 0;            ///< values: elements whose bits differ
  double max_absolute = 0;                   ///< values: largest |a - b|; NaN if only one of the two is NaN
  double max_relative = 0;                   ///< values: largest |a - b| / max(|a|, |b|)
  std::vector<std::int64_t> first_place;     ///< values: the index of the first element that differs
  double first_value = 0, second_value = 0;  ///< of that element
};
/// Compares all tensors of both, sorted by path. Equal means equal bits. Damage throws Error(checkpoint).
std::vector<TensorDifference> compare_checkpoints(const CheckpointFile& first, const CheckpointFile& second);

/// The new name of a variable. `taken` gets it. Throws Error(usage) if it is no valid name, or taken already;
/// `what` renames, for the message.
std::string new_name(const NameRules& rename, const std::string& name, std::set<std::string>& taken,
                     std::string_view what);

/// Writes the variables of `file` that match `variables`, renamed, to a file that contains only weights. With
/// `averages`, a variable has the values of its moving average, if the file has one.
/// Throws Error(checkpoint) if two variables would get the same name, and Error(usage) if a pattern or rule
/// matches no variable.
/// `output` follows the rules of io/output_file.h.
void export_weights(const CheckpointFile& file, const NamePatterns& variables, const NameRules& rename,
                    const std::string& output, bool averages = true);

/// Writes the mean of the variables of `files`, checkpoints of one model, to a file that contains only
/// weights. float32 and float64 are added in double, in the given order; other types must be equal in all
/// files. The header is that of the last file. Throws Error(checkpoint) that names the first variable that
/// does not match.
void average_weights(std::span<const CheckpointFile> files, const std::string& output);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The net of a run as an ONNX file: what `lockstep export` writes (docs/export.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

class Communicator;

struct OnnxExportOptions {
  std::string checkpoint = {};  ///< of a run: "last", "best" or a step; empty: the last (newest intact) one
  bool averages = true;         ///< a variable has the values of its moving average, where there is one
  bool fold_batch_norm =
      false;  ///< batch norms are put into the kernels of dense layers and convolutions before them
  /// The inputs are samples as they are stored: the net begins with scale, offset, mean, std, normalize,
  /// whiten and transforms of section data.
  bool with_normalisation = false;
  bool inputs_channels_first = false;  ///< the inputs are N x C x H x W
};

struct OnnxExport {
  std::int64_t global_step = 0;  ///< of the checkpoint
  std::int64_t layers = 0;       ///< that were written
  std::vector<std::string> folded;
};

/// Writes the net of `target` (a run directory, an exported folder, or the file of a checkpoint) to the file
/// `output`, which is replaced when its contents are complete ("-": standard output). One process. Opens the
/// training data only for a checkpoint that does not describe its samples. Throws Error(checkpoint),
/// Error(output), and Error(config) that names a layer or a transform that ONNX cannot express.
OnnxExport export_onnx(const std::string& target, const std::string& output,
                       const OnnxExportOptions& options = {});
/// The same for all ranks of a group: rank 0 writes, and all get its result or its error.
OnnxExport export_onnx(Communicator& world, const std::string& target, const std::string& output,
                       const OnnxExportOptions& options = {});

}  // namespace lockstep

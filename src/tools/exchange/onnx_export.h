// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "exchange/onnx_net.h"
#include "io/checkpoint.h"

namespace lockstep {

struct OnnxExportOptions {
  /// The inputs are samples as they are stored: the net begins with their normalisation (onnx_input_steps.h).
  bool with_normalisation = false;
  bool inputs_channels_first = false;
};

/// The net of a run with these values of its variables. Opens the data of the configuration if the checkpoint
/// does not describe them. `run_dir` may keep the numbers of data.normalize; empty: none does. One process.
OnnxNet onnx_net(const CheckpointFile& file, std::vector<ForeignTensor> variables, const std::string& run_dir,
                 const OnnxExportOptions& options = {});

}  // namespace lockstep

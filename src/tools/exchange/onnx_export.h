// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "exchange/onnx_net.h"
#include "io/checkpoint.h"

namespace lockstep {

/// The net of a run with these values of its variables. Opens the data of the configuration, which say what
/// shape the samples have. `run_dir` may keep the numbers of data.normalize; empty: none does. One process.
OnnxNet onnx_net(const CheckpointFile& file, std::vector<ForeignTensor> variables,
                 const std::string& run_dir);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The variables of a checkpoint as tensors in memory, and back as a file of weights. One process.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "exchange/foreign_tensor.h"
#include "io/checkpoint.h"

namespace lockstep {

/// All variables, by name, wide types first; with `averages`, a variable has the values of its moving average
/// where the file has one. Throws Error(checkpoint) if it has none or is damaged.
std::vector<ForeignTensor> checkpoint_tensors(const CheckpointFile& file, bool averages);

/// What an exported file tells of its checkpoint: format, lockstep_version, global_step, digest, config.
std::vector<std::pair<std::string, std::string>> checkpoint_facts(const CheckpointHeader& header);

/// Writes a checkpoint that contains only weights, with these names, to `output` by the rules of
/// io/output_file.h. `inputs` are the files that were read. Throws Error(data) for a name that no variable
/// could have, or that two have.
void write_weights_of(std::span<const ImportedTensor> tensors, const std::string& output,
                      std::span<const std::string> inputs);

}  // namespace lockstep

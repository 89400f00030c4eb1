// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// gpu.choose=measured: the chief measures which algorithms of a GPU's libraries are the fastest, once in a
// run's life, and keeps them in configs/gpu_choices.txt, with what they were measured on.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "run/setup/run_context.h"

namespace lockstep {

/// Before the training executor is made for microshards of these sizes: from now on, all ranks choose the
/// algorithms of the run's table, and those that the libraries list first for what it does not have. Without
/// a table that fits this GPU and these libraries, the chief measures. `run_dir` may be empty: then nothing
/// is kept. All ranks. Throws the same error on all.
void choose_gpu_algorithms(RunContext& context, std::span<const std::int64_t> sample_counts,
                           const std::string& run_dir);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How many microshards a round of a batch has if neither a configuration nor a checkpoint says it. The number
// is part of the arithmetic: it must not depend on the machine, nor on the clock.
#pragma once

#include <cstdint>
#include <string>

#include "run/sections/config.h"

namespace lockstep {

/// For a first launch on `ranks` ranks, of a round that has `samples` samples. On CPUs: 8, or the next power
/// of two that is not below the ranks; on GPUs: the ranks. Never more than the samples.
std::int64_t default_shards(bool on_gpu, int ranks, std::int64_t samples);

/// What the log of a new run says of it; empty if the configuration gives the number. `microshards`: of all
/// rounds; `threads`: the most that all ranks together would use.
std::string default_shards_text(const Config& config, std::int64_t microshards, std::int64_t threads);

}  // namespace lockstep

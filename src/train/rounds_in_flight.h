// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a user is told about the rounds of a batch (train.accumulate): how it is cut, and which microshards
// are in memory at the same time. Local, without communication; every rank finds the same.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/graph.h"

namespace lockstep {

/// "8 shards", or "8 microshards, 4 rounds of 2 shards".
std::string shards_text(std::int64_t microshards, std::int64_t rounds);

/// Which microshards are in flight on a rank, with their `megabytes` each, for `lockstep check`. `branches`:
/// of a device (train/branches.h); none: not known here.
std::string in_flight_text(const Graph::Calls& calls, bool on_device, double megabytes,
                           std::int64_t microshards, std::optional<int> branches);

/// A warning if there are several rounds and they save no memory of activations, because batch norms
/// synchronise all microshards; empty otherwise. Names the layers, and says what to do.
std::string rounds_save_nothing(const Graph::Calls& calls, bool on_device, std::int64_t rounds);

}  // namespace lockstep

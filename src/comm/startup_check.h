// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Do all ranks run the same thing? At the start (build, configuration, variables, data set), and later (the
// bits of the variables). A difference is found by hash in one allgather and then explained; all ranks throw
// the same error.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "comm/communicator.h"

namespace lockstep {

using NamedText = std::pair<std::string, std::string>;

/// All ranks, with the same names in the same order. Throws Error(config) that names the first field that
/// differs, the ranks, their hosts and the values (around the place where they differ).
void require_same(Communicator& communicator, std::span<const NamedText> fields);

/// All ranks. Throws Error(numeric) that names the rank or ranks whose `hash` is not the most common one.
/// `what` says what was hashed ("variables after step 100").
void require_same_bits(Communicator& communicator, std::uint64_t hash, const char* what);

/// "0-3, 7" for ascending numbers.
std::string rank_list(std::span<const int> ranks);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Checks that all ranks run the same thing: at the start the build, the configuration, the variables and the
// data set; later the bits of the variables. One allgather of hashes detects a difference, which is then
// explained. All ranks throw the same error.
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

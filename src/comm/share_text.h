// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Texts of ranks for all ranks.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

/// All ranks. Returns rank 0's text.
std::string broadcast_text(Communicator& communicator, std::string text, const char* what);
/// All ranks. Returns the texts of all ranks, by rank.
std::vector<std::string> gather_texts(Communicator& communicator, const std::string& mine, const char* what);

}  // namespace lockstep

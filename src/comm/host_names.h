// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The host of each rank, for messages.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

/// All ranks. Returns the host names in rank order; names longer than 63 characters are cut.
std::vector<std::string> host_names(Communicator& communicator);

}  // namespace lockstep

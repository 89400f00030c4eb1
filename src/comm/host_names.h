// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which host each rank is on, for messages.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

/// The host of every rank, in order; names longer than 63 characters are cut. All ranks.
std::vector<std::string> host_names(Communicator& communicator);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to comm: what this process sees of its own transports, from Linux.
#pragma once

#include "comm/transport.h"

namespace lockstep {

/// Own TCP connections, own host, mapped shared memory. Never throws: what cannot be read is not seen.
TransportView look_at_own_transports();

}  // namespace lockstep

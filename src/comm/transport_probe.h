// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to comm: detects this process's transports through Linux.
#pragma once

#include "comm/transport.h"

namespace lockstep {

/// This process's TCP connections, host and mapped shared memory. Never throws: what cannot be read is
/// omitted.
TransportView look_at_own_transports();

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace lockstep {

/// From the least to the most urgent message.
enum class LogLevel { debug, info, warning, error };

}  // namespace lockstep

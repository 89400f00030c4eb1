// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to this room.
#pragma once

#include "core/error.h"

namespace lockstep {

/// The device's library says that it has no primitive for a shape or a type: the caller may take another one.
/// Any other error may be gone in the next run, which would then take the first one, with other bits.
class NotSupported final : public Error {
 public:
  using Error::Error;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// An error that may go away when the work is tried again. Hooks and their services throw it; a session that
// may recover goes back to the last checkpoint (monitored_session.h).
#pragma once

#include "core/error.h"

namespace lockstep {

/// An error such as that of a file system or a service that did not answer.
class TransientError : public Error {
 public:
  using Error::Error;
};

inline bool is_transient(const Error& error) {
  return dynamic_cast<const TransientError*>(&error) != nullptr;
}

}  // namespace lockstep

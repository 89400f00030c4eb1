// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests on several ranks: the text of an error that all of them have.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "comm/shared_error.h"

namespace lockstep {

/// The message of the error that all ranks have alike.
template <typename Body>
std::string shared_error(Body body) {
  try {
    body();
  } catch (const SharedError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return "";
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A file cannot be opened or read, or is shorter than it was: a trouble of the file, not of one of its
// records. data.bad_records skips no record for it.
#pragma once

#include <string>
#include <utility>

#include "core/error.h"

namespace lockstep {

class FileError : public Error {
 public:
  FileError(std::string what_happened, std::string where, std::string advice)
      : Error(ErrorKind::data, std::move(what_happened), std::move(where), std::move(advice)) {}
};

}  // namespace lockstep

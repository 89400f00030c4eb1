// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/data.h"

#include "core/error.h"

namespace lockstep {

void throw_wrong_type(DType has, DType wanted) {
  throw Error(ErrorKind::bug, fmt::format("{} values used as {}", name_of(has), name_of(wanted)));
}

}  // namespace lockstep

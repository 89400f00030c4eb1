// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Where this program's documentation is.
#pragma once

#include <string>

namespace lockstep {

/// The path of index.md: of the installation that the program belongs to, or of the source whose build folder
/// it is in. Empty if there is neither.
std::string documentation_path();

}  // namespace lockstep

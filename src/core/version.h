// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The version of this build, from CMakeLists.txt (project VERSION).
#pragma once

#include <string_view>

namespace lockstep {

extern const std::string_view kVersion;  ///< "0.1.0"
extern const std::string_view kBuild;    ///< "GCC 12.2.0, Release, -O3 -DNDEBUG"

}  // namespace lockstep

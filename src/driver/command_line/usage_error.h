// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The error for a command line that is wrong.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace lockstep {

Error usage_error(std::string what, std::string advice);
/// "Did you mean 'train'? " before `otherwise`, if a known word is near.
std::string with_suggestion(std::string_view word, const std::vector<std::string>& known,
                            const std::string& otherwise);

}  // namespace lockstep

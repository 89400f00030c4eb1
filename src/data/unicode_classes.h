// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Letters, numbers and blanks of Unicode 16.0: what \p{L}, \p{N} and \s of regular expressions match.
#pragma once

#include <cstdint>

namespace lockstep {

enum class CharacterClass : std::uint8_t { other, letter, number, space };

/// Letters: categories L; numbers: categories N; spaces: the property White_Space.
CharacterClass class_of(char32_t code_point);

}  // namespace lockstep

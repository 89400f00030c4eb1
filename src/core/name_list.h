// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Lists of names in messages: a net may have a thousand layers, and a data set a thousand files.
#pragma once

#include <cstddef>
#include <string>

#include "core/shown_text.h"

namespace lockstep {

inline constexpr std::size_t kMostNamed = 10;

/// "a, b, c", each in one line (core/shown_text.h), with at most `most` of them: "a, b and 7 more". `names`:
/// a range of texts with size().
template <typename Names>
std::string name_list(const Names& names, std::size_t most = kMostNamed) {
  std::string text;
  std::size_t n = 0;
  for (const auto& name : names) {
    if (n == most) break;
    if (n++ > 0) text += ", ";
    text += shown_text(name);
  }
  if (names.size() > n) text += " and " + std::to_string(names.size() - n) + " more";
  return text;
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/left_over_names.h"

#include <algorithm>
#include <array>

namespace lockstep {

bool is_left_over(std::string_view name) {
  constexpr std::array<std::string_view, 7> kNames{"__MACOSX",    "Thumbs.db",   "thumbs.db", "ehthumbs.db",
                                                   "desktop.ini", "Desktop.ini", "@eaDir"};
  return name.starts_with('.') || std::ranges::find(kNames, name) != kNames.end();
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Names of others in YAML that the program writes.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// `text` in double quotes. What a terminal may act on is escaped, as in core/shown_text.h; YAML has the same
/// escapes. Bytes that are no UTF-8 stay: YAML has no escape for them.
std::string yaml_quoted(std::string_view text);

}  // namespace lockstep

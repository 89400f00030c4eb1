// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the reader jsonl: where the lines of a file are.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "io/byte_source.h"

namespace lockstep {

/// The first byte of each line, and the end of the last one; without blank lines at the end. Throws
/// Error(data) for a file that is no text in UTF-8 (io/text_bytes.h).
std::vector<std::int64_t> find_lines(ByteSource& source);

inline std::string_view without_line_end(std::string_view line) {
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace lockstep

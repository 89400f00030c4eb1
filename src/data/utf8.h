// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// UTF-8 (RFC 3629) as code points. Overlong forms, surrogates and numbers above U+10FFFF are invalid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lockstep {

/// The offset of the first byte that begins no valid code point; npos if `text` is valid.
std::size_t first_invalid_utf8(std::string_view text);

/// Removes and returns the first code point of `text`, which must be valid and not empty.
char32_t take_code_point(std::string_view& text);
/// The number of bytes, 1 to 4, of the first code point of `text`, which must be valid and not empty.
std::size_t code_point_bytes(std::string_view text);
void append_utf8(std::string& text, char32_t code_point);

/// `bytes` with U+FFFD for each longest part that begins a code point but does not complete it, and for each
/// other byte that is not UTF-8, as Unicode recommends and Rust and Python do.
std::string with_replacements(std::string_view bytes);

/// Throws Error(data) at "source, line N" with the position of the invalid byte (from 1) if `line` is not
/// valid.
void require_utf8(std::string_view line, const std::string& source, std::int64_t line_number);

}  // namespace lockstep

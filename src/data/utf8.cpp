// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/utf8.h"

#include <algorithm>

#include "core/error.h"
#include "core/shown_text.h"

namespace lockstep {

std::size_t first_invalid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = utf8_bytes(text.substr(at));
    if (bytes == 0) return at;
    at += bytes;
  }
  return std::string_view::npos;
}

std::size_t code_point_bytes(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  return lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

char32_t take_code_point(std::string_view& text) {
  const std::size_t bytes = code_point_bytes(text);
  LOCKSTEP_DCHECK(bytes <= text.size());
  const auto lead = static_cast<unsigned char>(text.front());
  char32_t code_point = bytes == 1 ? lead : lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i)
    code_point = (code_point << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  text.remove_prefix(bytes);
  return code_point;
}

void append_utf8(std::string& text, char32_t code_point) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  const auto rest = [&](int shift) { put(0x80U | ((code_point >> shift) & 0x3FU)); };
  if (code_point < 0x80) return put(code_point);
  if (code_point < 0x800) {
    put(0xC0U | (code_point >> 6));
  } else if (code_point < 0x10000) {
    put(0xE0U | (code_point >> 12));
    rest(6);
  } else {
    put(0xF0U | (code_point >> 18));
    rest(12);
    rest(6);
  }
  rest(0);
}

namespace {

/// The bytes of an invalid text that one U+FFFD replaces: what may begin a code point, or one byte.
std::size_t replaced_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) -> unsigned { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0xC2 || lead > 0xF4 || text.size() < 2) return 1;
  const unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(1) < least || byte(1) > most) return 1;
  std::size_t bytes = 2;
  while (bytes < text.size() && bytes < code_point_bytes(text) && (byte(bytes) & 0xC0U) == 0x80U) ++bytes;
  return bytes;
}

}  // namespace

std::string with_replacements(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::size_t good = std::min(first_invalid_utf8(bytes), bytes.size());
    text += bytes.substr(0, good);
    bytes.remove_prefix(good);
    if (bytes.empty()) break;
    text += "\xEF\xBF\xBD";
    bytes.remove_prefix(replaced_bytes(bytes));
  }
  return text;
}

void require_utf8(std::string_view line, const std::string& source, std::int64_t line_number) {
  const std::size_t bad = first_invalid_utf8(line);
  if (bad == std::string_view::npos) return;
  throw Error(ErrorKind::data,
              fmt::format("byte {} (0x{:02X}) is not UTF-8", bad + 1, static_cast<unsigned char>(line[bad])),
              fmt::format("{}, line {}", source, line_number),
              "Convert the file, for example: iconv -f ISO-8859-1 -t UTF-8 FILE > NEW.");
}

}  // namespace lockstep

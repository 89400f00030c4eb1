// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "core/shown_text.h"

#include <algorithm>

namespace lockstep {

namespace {

unsigned byte_of(char c) { return static_cast<unsigned char>(c); }

char32_t code_point_of(std::string_view bytes) {
  if (bytes.size() == 1) return byte_of(bytes[0]);
  char32_t code_point = byte_of(bytes[0]) & (0x7FU >> bytes.size());
  for (const char c : bytes.substr(1)) code_point = (code_point << 6) | (byte_of(c) & 0x3FU);
  return code_point;
}

/// What a terminal or a viewer of text may act on.
bool is_acted_on(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0)           // C0, DEL, C1
         || c == 0x2028 || c == 0x2029                 // ends of lines and paragraphs
         || c == 0x061C || c == 0x200E || c == 0x200F  // directions of writing
         || (c >= 0x202A && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

void append_visibly(std::string& out, char32_t c) {
  switch (c) {
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += c < 0x80 ? fmt::format("\\x{:02x}", static_cast<unsigned>(c))
                      : fmt::format("\\u{:04x}", static_cast<unsigned>(c));
  }
}

/// `stays(rest)`: whether the line end or tab that `rest` begins with is kept.
template <typename Stays>
std::string shown(std::string_view text, Stays stays) {
  if (std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; })) return std::string(text);
  std::string out;
  out.reserve(text.size() + 16);
  while (!text.empty()) {
    const std::size_t bytes = utf8_bytes(text);
    if (bytes == 0) {
      out += fmt::format("\\x{:02x}", byte_of(text.front()));
    } else if (const char32_t c = code_point_of(text.substr(0, bytes)); is_acted_on(c) && !stays(text)) {
      append_visibly(out, c);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return out;
}

/// The line, or its begin and its end, without parts of code points. It is valid UTF-8.
std::string shortened(std::string_view line) {
  constexpr std::size_t kMost = 2000, kKept = 200;
  if (line.size() <= kMost) return std::string(line);
  const auto continues = [&](std::size_t at) { return (byte_of(line[at]) & 0xC0U) == 0x80U; };
  std::size_t begin = kKept, end = line.size() - kKept;
  while (continues(begin)) --begin;
  while (continues(end)) ++end;
  return fmt::format("{} ... ({} characters left out) ... {}", line.substr(0, begin),
                     std::ranges::count_if(line.substr(begin, end - begin),
                                           [](char c) { return (byte_of(c) & 0xC0U) != 0x80U; }),
                     line.substr(end));
}

}  // namespace

std::size_t utf8_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return byte_of(text[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t bytes = lead >= 0xC2 && lead <= 0xDF   ? 2
                            : lead >= 0xE0 && lead <= 0xEF ? 3
                            : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                           : 0;
  if (bytes == 0 || text.size() < bytes) return 0;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  // The second byte decides about overlong forms (E0, F0), surrogates (ED) and numbers above U+10FFFF (F4).
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
      (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F))
    return 0;
  return bytes;
}

std::string shown_text(std::string_view text) {
  return shown(text, [](std::string_view) { return false; });
}

std::string shown_lines(std::string_view text) {
  return shown(text, [](std::string_view rest) { return rest.front() == '\n' || rest.front() == '\t'; });
}

std::string shown_message(std::string_view text) {
  const std::string all = shown(text, [](std::string_view rest) {
    return rest.front() == '\t' || rest.starts_with("\n  ") || rest == "\n";
  });
  std::string out;
  for (std::string_view rest = all;;) {
    const std::size_t end = rest.find('\n');
    out += shortened(rest.substr(0, end));
    if (end == std::string_view::npos) return out;
    out += '\n';
    rest.remove_prefix(end + 1);
  }
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/terminal/text_style.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "core/process_environment.h"
#include "core/scalar.h"
#include "core/shown_text.h"
#include "session/terminal.h"

namespace lockstep {

namespace {

constexpr int kLeast = 20, kMost = 1000;

bool is_set(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

/// The locale of characters, as setlocale(3) finds it.
bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!is_set(name)) continue;
    std::string text(std::getenv(name));
    for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    return text.find("utf-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

int number_in(const char* variable, int usual) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return usual;
  return static_cast<int>(std::clamp<std::int64_t>(parse_integer(text).value_or(usual), kLeast, kMost));
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

std::string_view code_of(Colour colour) {
  switch (colour) {
    case Colour::none:
      return "";
    case Colour::dim:
      return "\033[2m";
    case Colour::bold:
      return "\033[1m";
    case Colour::red:
      return "\033[31m";
    case Colour::green:
      return "\033[32m";
    case Colour::yellow:
      return "\033[33m";
    case Colour::blue:
      return "\033[34m";
    case Colour::magenta:
      return "\033[35m";
    case Colour::cyan:
      return "\033[36m";
  }
  return "";
}

}  // namespace

TextStyle style_of_output() {
  TextStyle style;
  const auto width = terminal_width_of(stdout, process_environment);
  style.width = std::clamp(width ? width() : number_in("COLUMNS", style.width), kLeast, kMost);
  style.height = number_in("LINES", style.height);
  style.unicode = locale_is_utf8();
  style.redraws = width && isatty(STDOUT_FILENO) == 1;
  style.colours = width && !is_set("NO_COLOR");
  winsize size{};
  if (style.redraws && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0)
    style.height = size.ws_row;
  return style;
}

TextLine& TextLine::add(std::string_view text, Colour colour) {
  std::string part;
  for (const char c : shown_text(text)) {
    if (!continues(c) && columns_ >= style_->width) break;
    if (!continues(c)) ++columns_;
    part += c;
  }
  if (part.empty()) return *this;
  const bool coloured = style_->colours && colour != Colour::none;
  if (coloured) text_ += code_of(colour);
  text_ += part;
  if (coloured) text_ += "\033[0m";
  return *this;
}

TextLine& TextLine::pad_to(int column) {
  return add(std::string(static_cast<std::size_t>(std::max(0, column - columns_)), ' '));
}

int columns_of(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return !continues(c); }));
}

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace lockstep

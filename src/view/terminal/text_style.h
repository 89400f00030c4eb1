// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What the reader of standard output can show: how wide and high it is, braille and blocks or ASCII only,
// colours or none, and whether it can be redrawn.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

struct TextStyle {
  int width = 80, height = 24;  ///< columns and lines
  bool unicode = false;         ///< LC_ALL, LC_CTYPE or LANG name UTF-8
  bool colours = false;         ///< a terminal, not TERM=dumb, and NO_COLOR is unset or empty
  bool redraws = false;         ///< a terminal of this process that is not TERM=dumb
};

/// The style of standard output now; asked again after the terminal has changed its size.
TextStyle style_of_output();

enum class Colour { none, dim, bold, red, green, yellow, blue, magenta, cyan };

/// A line of at most `width` columns; what does not fit is cut off. Texts are UTF-8 of characters that are
/// one column wide; what a terminal would act on is shown as core/shown_text.h says.
class TextLine {
 public:
  /// `style` outlives it.
  explicit TextLine(const TextStyle& style) : style_(&style) {}
  TextLine& add(std::string_view text, Colour colour = Colour::none);
  /// Blanks up to `column`, from 0; none if the line is longer.
  TextLine& pad_to(int column);
  int columns() const { return columns_; }
  int room() const { return style_->width - columns_; }
  /// The text with escape sequences for colours where the style has them.
  const std::string& text() const { return text_; }

 private:
  const TextStyle* style_;
  std::string text_;
  int columns_ = 0;
};

/// Characters of a UTF-8 text.
int columns_of(std::string_view text);
/// `text` `count` times; nothing if `count` is negative.
std::string repeated(std::string_view text, int count);

}  // namespace lockstep

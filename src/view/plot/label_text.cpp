// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/plot/label_text.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

namespace lockstep {

namespace {

// Thousandths of the font size, for the characters from space to tilde.
constexpr std::array<int, 95> kWidths{
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361,  318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635,  611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352,  635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592,  525, 636, 337, 636, 838};
constexpr double kBold = 1.15, kOther = 700, kWide = 1000;
constexpr std::string_view kDots = "…";

/// The characters of UTF-8 text.
std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> found;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin + 1;
    while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    found.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return found;
}

double width_of(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (first < 0x20 || first == 0x7F) return kWide;
  if (first < 0x80) return kWidths[first - 0x20U];
  // Two bytes: Latin with accents, Greek, Cyrillic; more: the characters of East Asia and the three dots.
  return character.size() <= 2 ? kOther : kWide;
}

/// Where the parts of a path or of a key begin: after a slash, or after a dot that is not one of a number.
std::vector<std::size_t> parts_of(std::string_view text) {
  std::vector<std::size_t> begins;
  if (text.find(' ') != std::string_view::npos) return begins;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const bool is_digit = text[i] >= '0' && text[i] <= '9';
    if (text[i - 1] == '/' || (text[i - 1] == '.' && !is_digit)) begins.push_back(i);
  }
  return begins;
}

std::string joined(std::span<const std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

}  // namespace

double text_width(std::string_view text, double pixels, bool bold) {
  double sum = 0;
  for (const std::string_view character : characters(text)) sum += width_of(character);
  return sum * pixels * (bold ? kBold : 1) / 1000;
}

std::string fitted(const std::string& text, double width, double pixels, bool bold) {
  const auto fits = [&](std::string_view one) { return text_width(one, pixels, bold) <= width; };
  if (fits(text)) return text;
  for (const std::size_t part : parts_of(text)) {
    const std::string end = std::string(kDots) + text.substr(part);
    if (fits(end)) return end;
  }
  const std::vector<std::string_view> all = characters(text);
  for (std::size_t kept = all.size() - 1; kept > 1; --kept) {
    const std::size_t begin = (kept + 1) / 2;
    const std::string shorter =
        joined(std::span(all).first(begin)) + std::string(kDots) + joined(std::span(all).last(kept - begin));
    if (fits(shorter)) return shorter;
  }
  return std::string(all.front()) + std::string(kDots);
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/plot/text_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <string_view>
#include <utility>

namespace lockstep {

namespace {

constexpr std::string_view kMarks = "*+ox#@%&";
constexpr std::array kColours{Colour::cyan,  Colour::yellow, Colour::magenta,
                              Colour::green, Colour::red,    Colour::blue};

/// Several curves are told apart by colours; without colours braille dots would look alike.
bool has_dots(const TextStyle& style, std::size_t curves) {
  return style.unicode && (style.colours || curves == 1);
}

char mark_of(std::size_t curve) { return kMarks[curve % kMarks.size()]; }
Colour colour_of(std::size_t curve, std::size_t curves) {
  return curves == 1 ? Colour::none : kColours[curve % kColours.size()];
}

/// The dots of one curve, of which a character shows 2 x 4 as braille and else 1 x 1.
class Dots {
 public:
  Dots(int columns, int rows, bool braille)
      : across_(braille ? 2 : 1),
        down_(braille ? 4 : 1),
        width_(columns * across_),
        height_(rows * down_),
        set_(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_)) {}
  int width() const { return width_; }
  int height() const { return height_; }
  /// A vertical line; row 0 is the lowest one.
  void draw(int column, int from, int to) {
    for (int row = std::min(from, to); row <= std::max(from, to); ++row) set_[index(column, row)] = true;
  }
  /// The dots of a character as bits of U+2800, and how many they are. Row 0 is the lowest one.
  unsigned bits(int row, int cell) const {
    static constexpr unsigned kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned bits = 0;
    for (int y = 0; y < down_; ++y)
      for (int x = 0; x < across_; ++x)
        if (set_[index(cell * across_ + x, row * down_ + down_ - 1 - y)]) bits |= kBits[y][x];
    return bits;
  }

 private:
  std::size_t index(int column, int row) const {
    return static_cast<std::size_t>(row) * static_cast<std::size_t>(width_) +
           static_cast<std::size_t>(column);
  }
  int across_, down_, width_, height_;
  std::vector<bool> set_;
};

std::string braille(unsigned bits) {
  const unsigned code = 0x2800 + bits;
  return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
          static_cast<char>(0x80 | (code & 0x3F))};
}

class Drawing {
 public:
  Drawing(const TextPlot& plot, const TextStyle& style)
      : plot_(plot), style_(style), braille_(has_dots(style, plot.curves.size())) {
    value_texts_ = tick_texts(plot.values.ticks);
    if (plot.value_text) std::ranges::transform(plot.values.ticks, value_texts_.begin(), plot.value_text);
    for (const std::string& text : value_texts_) margin_ = std::max(margin_, static_cast<int>(text.size()));
    columns_ = std::max(4, style.width - margin_ - 2);
    for (const TextCurve& curve : plot.curves) add(curve);
  }

  std::vector<std::string> lines() const {
    std::vector<std::string> lines{TextLine(style_).add(plot_.title, Colour::bold).text()};
    if (plot_.curves.size() > 1) add_legend(lines);
    const std::vector<std::string> labels = value_labels();
    for (int row = plot_.rows - 1; row >= 0; --row)
      lines.push_back(curve_line(row, labels[static_cast<std::size_t>(row)]));
    const bool unicode = style_.unicode;
    lines.push_back(TextLine(style_)
                        .pad_to(margin_ + 1)
                        .add(unicode ? "└" : "+", Colour::dim)
                        .add(repeated(unicode ? "─" : "-", columns_), Colour::dim)
                        .text());
    lines.push_back(TextLine(style_).pad_to(margin_ + 2).add(x_labels()).text());
    lines.push_back(TextLine(style_).pad_to(margin_ + 2).add(plot_.x_name).text());
    return lines;
  }

 private:
  int row_of(double value, int height) const {
    const double share = (value - plot_.values.low) / (plot_.values.high - plot_.values.low);
    return static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * (height - 1)));
  }

  void add(const TextCurve& curve) {
    Dots& dots = dots_.emplace_back(columns_, plot_.rows, braille_);
    const std::vector<ChartColumn> columns = curve.columns(dots.width());
    for (int x = 0; x < dots.width(); ++x) {
      const ChartColumn& column = columns[static_cast<std::size_t>(x)];
      if (std::isnan(column.least)) continue;
      dots.draw(x, row_of(column.least, dots.height()), row_of(column.most, dots.height()));
    }
  }

  std::vector<std::string> value_labels() const {
    std::vector<std::string> labels(static_cast<std::size_t>(plot_.rows));
    const int height = plot_.rows * (braille_ ? 4 : 1);
    for (std::size_t i = 0; i < value_texts_.size(); ++i) {
      const int row =
          height < 2 ? 0 : row_of(plot_.values.ticks[i], height) * (plot_.rows - 1) / (height - 1);
      labels[static_cast<std::size_t>(row)] = value_texts_[i];
    }
    return labels;
  }

  std::string curve_line(int row, const std::string& label) const {
    TextLine line(style_);
    line.pad_to(margin_ - static_cast<int>(label.size())).add(label).pad_to(margin_ + 1);
    const bool unicode = style_.unicode, tick = !label.empty();
    line.add(unicode ? (tick ? "┤" : "│") : (tick ? "+" : "|"), Colour::dim);
    int blanks = 0;
    for (int cell = 0; cell < columns_; ++cell) {
      // The curve with most dots has the character; of equal ones the first.
      std::size_t owner = 0;
      int most = 0;
      unsigned all = 0;
      for (std::size_t i = 0; i < dots_.size(); ++i) {
        const unsigned bits = dots_[i].bits(row, cell);
        all |= bits;
        if (std::popcount(bits) > most) {
          most = std::popcount(bits);
          owner = i;
        }
      }
      if (all == 0) {
        ++blanks;
        continue;
      }
      line.pad_to(line.columns() + std::exchange(blanks, 0));
      line.add(braille_ ? braille(all) : std::string(1, mark_of(owner)), colour_of(owner, dots_.size()));
    }
    return line.text();
  }

  void add_legend(std::vector<std::string>& lines) const {
    TextLine line(style_);
    for (std::size_t i = 0; i < plot_.curves.size(); ++i) {
      const std::string& name = plot_.curves[i].name;
      if (line.columns() > 0 && columns_of(name) + 4 > line.room()) {
        lines.push_back(line.text());
        line = TextLine(style_);
      }
      if (line.columns() > 0) line.add("  ");
      line.add(braille_ ? "⣿" : std::string(1, mark_of(i)), colour_of(i, plot_.curves.size()));
      line.add(" ").add(name);
    }
    lines.push_back(line.text());
  }

  /// Ticks below the axis; each begins at its column, or ends at the edge.
  std::string x_labels() const {
    std::string text;
    for (const double tick : plot_.x.ticks) {
      const double share = (tick - plot_.x.low) / (plot_.x.high - plot_.x.low);
      const std::string label = plot_.x_text(tick);
      const auto room = static_cast<std::size_t>(columns_);
      if (label.size() > room) continue;
      const auto at =
          std::min(static_cast<std::size_t>(std::lround(share * (columns_ - 1))), room - label.size());
      if (at < text.size() + (text.empty() ? 0 : 1)) continue;
      text.append(at - text.size(), ' ');
      text += label;
    }
    return text;
  }

  const TextPlot& plot_;
  const TextStyle& style_;
  const bool braille_;
  int margin_ = 0, columns_ = 0;
  std::vector<Dots> dots_;
  std::vector<std::string> value_texts_;  ///< by tick
};

}  // namespace

std::vector<std::string> text_plot(const TextPlot& plot, const TextStyle& style) {
  return Drawing(plot, style).lines();
}

}  // namespace lockstep

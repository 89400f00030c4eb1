// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "driver/plot/chart.h"

namespace lockstep {

namespace {

constexpr int kRows = 12;

/// Dots, of which a character shows 2 x 4 in Unicode and 1 x 1 in ASCII.
class Dots {
 public:
  Dots(int columns, bool unicode)
      : across_(unicode ? 2 : 1),
        down_(unicode ? 4 : 1),
        width_(columns * across_),
        height_(kRows * down_),
        unicode_(unicode),
        set_(static_cast<std::size_t>(width_ * height_)) {}
  int width() const { return width_; }
  int height() const { return height_; }
  /// A vertical line; row 0 is the lowest one.
  void draw(int column, int from, int to) {
    for (int row = std::min(from, to); row <= std::max(from, to); ++row)
      set_[static_cast<std::size_t>(row * width_ + column)] = true;
  }
  /// A row of characters; row 0 is the lowest one.
  std::string row(int at) const {
    std::string text;
    for (int cell = 0; cell < width_ / across_; ++cell)
      text += unicode_ ? braille(at, cell) : is_set(cell, at) ? "*" : " ";
    return text;
  }

 private:
  bool is_set(int column, int row) const { return set_[static_cast<std::size_t>(row * width_ + column)]; }
  /// U+2800 with a bit per dot.
  std::string braille(int at, int cell) const {
    static constexpr unsigned kBits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    unsigned bits = 0;
    for (int y = 0; y < down_; ++y)
      for (int x = 0; x < across_; ++x)
        if (is_set(cell * across_ + x, at * down_ + down_ - 1 - y)) bits |= kBits[y][x];
    if (bits == 0) return " ";
    const unsigned code = 0x2800 + bits;
    return {static_cast<char>(0xE0 | (code >> 12)), static_cast<char>(0x80 | ((code >> 6) & 0x3F)),
            static_cast<char>(0x80 | (code & 0x3F))};
  }

  int across_, down_, width_, height_;
  bool unicode_;
  std::vector<bool> set_;
};

/// Ticks of the steps, below the axis; each begins at its column.
std::string step_labels(const ChartAxis& axis, int columns) {
  std::string text;
  for (const double tick : axis.ticks) {
    const auto at = static_cast<std::size_t>(std::lround(tick / axis.high * (columns - 1)));
    const std::string label = fmt::format("{:.0f}", tick);
    if (at < text.size() + (text.empty() ? 0 : 1) ||
        at + label.size() > static_cast<std::size_t>(columns) + 1)
      continue;
    text.append(at - text.size(), ' ');
    text += label;
  }
  return text;
}

std::string times(const std::string& text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

std::string text_chart(const Chart& chart, int width, bool unicode) {
  const std::vector<ChartColumn> coarse = chart_columns(chart, 512);
  const ChartAxis values = value_axis(coarse, 4);
  std::size_t margin = 0;
  for (const double tick : values.ticks) margin = std::max(margin, tick_text(tick).size());
  const int columns = std::max(20, width - static_cast<int>(margin) - 2);
  Dots dots(columns, unicode);
  const auto row_of = [&](double value) {
    const double share = (value - values.low) / (values.high - values.low);
    return std::clamp(static_cast<int>(std::lround(share * (dots.height() - 1))), 0, dots.height() - 1);
  };
  const std::vector<ChartColumn> curve = chart_columns(chart, dots.width());
  for (int x = 0; x < dots.width(); ++x) {
    const ChartColumn& column = curve[static_cast<std::size_t>(x)];
    dots.draw(x, row_of(column.least), row_of(column.most));
  }
  std::vector<std::string> labels(kRows);
  for (const double tick : values.ticks)
    labels[static_cast<std::size_t>(row_of(tick) * (kRows - 1) / (dots.height() - 1))] = tick_text(tick);
  std::string text = chart.title + "\n";
  for (int row = kRows - 1; row >= 0; --row) {
    const std::string& label = labels[static_cast<std::size_t>(row)];
    std::string line =
        fmt::format("{:>{}} {}{}", label, margin,
                    unicode ? (label.empty() ? "│" : "┤") : (label.empty() ? "|" : "+"), dots.row(row));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  const std::string corner = unicode ? "└" : "+", dash = unicode ? "─" : "-";
  text += std::string(margin + 1, ' ') + corner + times(dash, columns) + "\n";
  text +=
      std::string(margin + 2, ' ') + step_labels(step_axis(chart, std::max(2, columns / 12)), columns) + "\n";
  std::string epochs;
  if (chart.steps_per_epoch > 0)
    epochs = fmt::format("; {} steps are an epoch, {:.4g} epochs in all", chart.steps_per_epoch,
                         static_cast<double>(chart.steps) / static_cast<double>(chart.steps_per_epoch));
  return text + std::string(margin + 2, ' ') + "step" + epochs + "\n";
}

}  // namespace lockstep

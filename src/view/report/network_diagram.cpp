// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The layout: a row per box along the longest path from the features, a column per branch. A connection to
// the next row is a line; one that passes other boxes goes around them on the right.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "view/report/html.h"
#include "view/report/network_view.h"

namespace lockstep::report {

namespace {

constexpr double kBox = 190, kHigh = 40, kGapX = 34, kGapY = 20, kMargin = 10, kBend = 9;

struct Box {
  std::string title, kind, more, shape, style;
  std::vector<std::size_t> inputs;
  int row = 0, column = 0;
};

/// What a person does not think of as a layer of its own when it has one input, which nobody else reads.
bool joins(const NetworkLayer& layer) {
  static const std::set<std::string, std::less<>> kSmall{
      "relu",     "batch_norm", "dropout",    "flatten",       "tanh",   "sigmoid",
      "gelu",     "softmax",    "leaky_relu", "elu",           "swish",  "layer_norm",
      "rms_norm", "drop_path",  "group_norm", "instance_norm", "reshape"};
  return layer.fused || kSmall.contains(layer.kind);
}

std::vector<Box> boxes_of(const NetworkView& network) {
  std::vector<Box> boxes{{"features", "", "", network.features, "end", {}}};
  std::vector<std::size_t> box_of(network.layers.size());
  std::vector<int> readers(network.layers.size(), 0);
  for (const NetworkLayer& layer : network.layers)
    for (const int input : layer.inputs)
      if (input >= 0) ++readers[static_cast<std::size_t>(input)];
  for (const NetworkHead& head : network.heads)
    if (head.layer >= 0) ++readers[static_cast<std::size_t>(head.layer)];
  for (std::size_t i = 0; i < network.layers.size(); ++i) {
    const NetworkLayer& layer = network.layers[i];
    if (joins(layer) && layer.inputs.size() == 1 && layer.inputs[0] >= 0 && layer.shared_with < 0 &&
        readers[static_cast<std::size_t>(layer.inputs[0])] == 1) {
      box_of[i] = box_of[static_cast<std::size_t>(layer.inputs[0])];
      Box& box = boxes[box_of[i]];
      box.more += fmt::format("{}{}", box.more.empty() ? "" : ", ", layer.kind);
      if (!layer.shape.empty()) box.shape = layer.shape;
      continue;
    }
    box_of[i] = boxes.size();
    Box box{layer.name, layer.kind, "", layer.shape, "", {}};
    if (layer.shared_with >= 0) {
      box.style = "shared";
      box.more = "variables of " + network.layers[static_cast<std::size_t>(layer.shared_with)].name;
    }
    for (const int input : layer.inputs)
      box.inputs.push_back(input < 0 ? 0 : box_of[static_cast<std::size_t>(input)]);
    boxes.push_back(std::move(box));
  }
  for (const NetworkHead& head : network.heads)
    if (head.layer >= 0)
      boxes.push_back({head.name.empty() ? "loss" : head.name,
                       head.name.empty() ? "" : "head",
                       "",
                       "",
                       "end",
                       {box_of[static_cast<std::size_t>(head.layer)]}});
  return boxes;
}

/// Rows by the longest path; a branch gets the first column that is free where it passes.
int place(std::vector<Box>& boxes) {
  std::set<std::pair<int, int>> taken{{0, 0}};
  int columns = 1;
  for (std::size_t i = 1; i < boxes.size(); ++i) {
    Box& box = boxes[i];
    int above = 0;
    box.column = 0;
    if (!box.inputs.empty()) box.column = boxes[box.inputs[0]].column;
    for (const std::size_t input : box.inputs) {
      above = std::max(above, boxes[input].row);
      box.column = std::min(box.column, boxes[input].column);
    }
    box.row = above + 1;
    while (taken.contains({box.row, box.column})) ++box.column;
    taken.insert({box.row, box.column});
    columns = std::max(columns, box.column + 1);
  }
  return columns;
}

double left(const Box& box) { return kMargin + box.column * (kBox + kGapX); }
double top(const Box& box) { return kMargin + box.row * (kHigh + kGapY); }

std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most - 1;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

std::string box_svg(const Box& box) {
  std::string text = fmt::format(
      "<g class=\"box {}\"><title>{}</title><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
      "height=\"{:.0f}\" rx=\"6\"/>",
      box.style,
      escaped(fmt::format("{}{}{} {}", box.title, box.kind.empty() ? "" : " (" + box.kind + ")",
                          box.more.empty() ? "" : " + " + box.more, box.shape)),
      left(box), top(box), kBox, kHigh);
  const bool two = !box.kind.empty() || !box.more.empty();
  const double base = top(box) + (two ? 16 : 25);
  text += fmt::format("<text class=\"name\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>", left(box) + 9, base,
                      escaped(shortened(box.title, 18)));
  text += fmt::format("<text class=\"shape\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>",
                      left(box) + kBox - 9, base, escaped(shortened(box.shape, 14)));
  if (two)
    text +=
        fmt::format("<text class=\"kind\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>", left(box) + 9, top(box) + 31,
                    escaped(shortened(box.more.empty() ? box.kind : box.kind + " + " + box.more, 30)));
  return text + "</g>\n";
}

}  // namespace

std::string network_diagram(const NetworkView& network) {
  std::vector<Box> boxes = boxes_of(network);
  const int columns = place(boxes);
  const int rows = std::ranges::max(boxes, {}, &Box::row).row + 1;
  std::set<std::pair<int, int>> taken;
  for (const Box& box : boxes) taken.insert({box.row, box.column});
  const auto blocked = [&](const Box& from, const Box& to) {
    for (int row = from.row + 1; row < to.row; ++row)
      if (taken.contains({row, to.column})) return true;
    return false;
  };
  const double edge = kMargin + columns * (kBox + kGapX) - kGapX;
  double width = edge + kMargin;
  std::string lines, shapes;
  std::vector<std::vector<std::pair<int, int>>> used;
  for (const Box& box : boxes) {
    for (const std::size_t input : box.inputs) {
      const Box& from = boxes[input];
      const double x0 = left(from) + kBox / 2, y0 = top(from) + kHigh, x1 = left(box) + kBox / 2,
                   y1 = top(box);
      if (!blocked(from, box)) {
        // Down in the column of the target, so that nothing is crossed.
        const double turn = y0 + kGapY / 2;
        lines += x0 == x1
                     ? fmt::format("<path class=\"edge\" d=\"M{:.0f} {:.0f}V{:.0f}\"/>\n", x0, y0, y1 - 2)
                     : fmt::format("<path class=\"edge\" d=\"M{:.0f} {:.0f}V{:.0f}H{:.0f}V{:.0f}\"/>\n", x0,
                                   y0, turn, x1, y1 - 2);
        continue;
      }
      std::size_t lane = 0;
      const auto crosses = [&](std::size_t of) {
        return std::ranges::any_of(
            used[of], [&](const auto& others) { return others.first < box.row && from.row < others.second; });
      };
      while (lane < used.size() && crosses(lane)) ++lane;
      if (lane == used.size()) used.emplace_back();
      used[lane].emplace_back(from.row, box.row);
      const double x = edge + 12 + 10 * static_cast<double>(lane);
      width = std::max(width, x + kMargin);
      const double out = top(from) + kHigh / 2, in = y1 - kGapY / 2 + 2;
      const bool beside = taken.upper_bound({from.row, from.column}) != taken.end() &&
                          taken.upper_bound({from.row, from.column})->first == from.row;
      // From the side of the box, or below it where another box stands next to it.
      lines +=
          beside
              ? fmt::format(
                    "<path class=\"edge skip\" d=\"M{:.0f} {:.0f}v{:.0f}H{:.0f}V{:.0f}H{:.0f}V{:.0f}\"/>\n",
                    x0, y0, kBend, x, in, x1, y1 - 2)
              : fmt::format("<path class=\"edge skip\" d=\"M{:.0f} {:.0f}H{:.0f}V{:.0f}H{:.0f}V{:.0f}\"/>\n",
                            left(from) + kBox, out, x, in, x1, y1 - 2);
    }
    shapes += box_svg(box);
  }
  const double height = 2 * kMargin + rows * (kHigh + kGapY) - kGapY;
  return fmt::format(
             "<div class=\"scroll tall\"><svg class=\"network\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
             "width=\"{0:.0f}\" height=\"{1:.0f}\" "
             "role=\"img\" aria-label=\"the layers of the network\"><defs><marker id=\"arrow\" viewBox=\"0 0 "
             "6 6\" refX=\"5\" refY=\"3\" "
             "markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path d=\"M0 0L6 3L0 "
             "6Z\"/></marker></defs>\n",
             width, height) +
         lines + shapes + "</svg></div>\n";
}

}  // namespace lockstep::report

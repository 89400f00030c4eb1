// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "view/plot/label_text.h"
#include "view/report/html.h"
#include "view/report/network_layout.h"
#include "view/report/network_view.h"

namespace lockstep::report {

namespace {

constexpr double kInside = 9, kBetween = 8;
constexpr double kRoom = DiagramLayout::kBoxWidth - 2 * kInside;

/// The name in the first line, the kind and the shape in the second.
std::string box_svg(const DiagramBox& box) {
  const std::string kind =
      box.more.empty() || box.kind.empty() ? box.kind + box.more : box.kind + " + " + box.more;
  std::string text = fmt::format(
      "<g class=\"box {}\"><title>{}</title><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
      "height=\"{:.0f}\" rx=\"6\"/>",
      box.style, escaped(fmt::format("{}{} {}", box.title, kind.empty() ? "" : " (" + kind + ")", box.shape)),
      box.x, box.y, DiagramLayout::kBoxWidth, DiagramLayout::kBoxHeight);
  const std::string shape = fitted(box.shape, kRoom * 0.6);
  const double rest = kRoom - (shape.empty() ? 0 : text_width(shape) + kBetween);
  const bool one_line = kind.empty();
  const double base = box.y + (one_line ? 25 : 16);
  text += fmt::format("<text class=\"name\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>", box.x + kInside, base,
                      escaped(fitted(box.title, one_line ? rest : kRoom, kLabelPixels, true)));
  if (!one_line)
    text += fmt::format("<text class=\"kind\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>", box.x + kInside,
                        box.y + 31, escaped(fitted(kind, rest)));
  if (!shape.empty())
    text +=
        fmt::format("<text class=\"shape\" x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"end\">{}</text>",
                    box.x + DiagramLayout::kBoxWidth - kInside, one_line ? base : box.y + 31, escaped(shape));
  return text + "</g>\n";
}

std::string line_svg(const DiagramLine& line) {
  std::string path;
  for (const DiagramPoint& point : line.points)
    path += fmt::format("{}{:.0f} {:.0f}", path.empty() ? 'M' : 'L', point.x, point.y);
  return fmt::format("<path class=\"edge{}\" d=\"{}\"/>\n", line.is_skip ? " skip" : "", path);
}

}  // namespace

std::string network_diagram(const NetworkView& network) {
  const DiagramLayout layout = network_layout(network);
  std::string text = fmt::format(
      "<div class=\"scroll tall\"><svg class=\"network\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\" aria-label=\"the layers of the network\"><defs><marker id=\"arrow\" "
      "viewBox=\"0 0 6 6\" refX=\"5\" refY=\"3\" markerWidth=\"6\" markerHeight=\"6\" orient=\"auto\"><path "
      "d=\"M0 0L6 3L0 6Z\"/></marker></defs>\n",
      layout.width, layout.height);
  for (const DiagramLine& line : layout.lines) text += line_svg(line);
  for (const DiagramBox& box : layout.boxes) text += box_svg(box);
  return text + "</svg></div>\n";
}

}  // namespace lockstep::report

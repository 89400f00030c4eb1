// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The labels of an SVG of a report as boxes, to test that none is cut and none covers another.
#pragma once

#include <regex>
#include <string>
#include <vector>

#include "view/plot/label_text.h"

namespace lockstep {

struct LabelBox {
  std::string text;
  double left, top, right, bottom;
};

namespace svg_labels {

inline double number_of(const std::string& attributes, const std::string& name) {
  std::smatch found;
  const std::regex pattern("(?:^| )" + name + "=\"([-0-9.]+)\"");
  return std::regex_search(attributes, found, pattern) ? std::stod(found[1]) : 0;
}

inline std::string plain(std::string text) {
  for (const auto& [code, character] :
       {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}})
    for (std::size_t at = text.find(code); at != std::string::npos; at = text.find(code))
      text.replace(at, std::string(code).size(), character);
  return text;
}

}  // namespace svg_labels

/// Of all <text> elements of one SVG. The names of classes are those of page.css: "name" is bold.
inline std::vector<LabelBox> label_boxes(const std::string& svg) {
  constexpr double kAbove = 8.5, kBelow = 2.5;
  static const std::regex element("<text([^>]*)>([^<]*)</text>");
  std::vector<LabelBox> boxes;
  for (std::sregex_iterator at(svg.begin(), svg.end(), element), end; at != end; ++at) {
    const std::string attributes = (*at)[1], text = svg_labels::plain((*at)[2]);
    const bool bold = attributes.find("class=\"name") != std::string::npos;
    const double width = text_width(text, kLabelPixels, bold);
    const double share = attributes.find("\"end\"") != std::string::npos      ? 1
                         : attributes.find("\"middle\"") != std::string::npos ? 0.5
                                                                              : 0;
    std::smatch moved;
    static const std::regex turned("translate\\(([-0-9.]+) ([-0-9.]+)\\) rotate\\((-?90)\\)");
    if (std::regex_search(attributes, moved, turned)) {
      const double x = std::stod(moved[1]), y = std::stod(moved[2]);
      boxes.push_back({text, x - kAbove, y - width * (1 - share), x + kBelow, y + width * share});
      continue;
    }
    const double x = svg_labels::number_of(attributes, "x") - share * width,
                 y = svg_labels::number_of(attributes, "y");
    boxes.push_back({text, x, y - kAbove, x + width, y + kBelow});
  }
  return boxes;
}

/// What is wrong with the labels of a picture: pairs that cover each other, and those that leave it.
inline std::vector<std::string> label_faults(const std::string& svg) {
  std::smatch size;
  static const std::regex view_box("viewBox=\"0 0 ([0-9.]+) ([0-9.]+)\" *(?!refX)");
  std::vector<std::string> faults;
  if (!std::regex_search(svg, size, view_box)) return {"no viewBox"};
  const double width = std::stod(size[1]), height = std::stod(size[2]);
  const std::vector<LabelBox> boxes = label_boxes(svg);
  if (boxes.empty()) faults.emplace_back("no labels");
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    const LabelBox& a = boxes[i];
    if (a.left < 0 || a.top < 0 || a.right > width || a.bottom > height) faults.push_back("cut: " + a.text);
    for (std::size_t k = 0; k < i; ++k) {
      const LabelBox& b = boxes[k];
      if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom)
        faults.push_back(b.text + " covers " + a.text);
    }
  }
  return faults;
}

}  // namespace lockstep

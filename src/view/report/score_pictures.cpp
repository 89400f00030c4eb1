// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/score_pictures.h"

#include <fmt/format.h>

#include "view/report/html.h"

namespace lockstep::report {

namespace {

constexpr double kSide = 300, kLeft = 44, kTop = 10, kBottom = 36, kRight = 12;
constexpr std::size_t kColors = 8;

/// The colour of a curve, and how it is dashed after all colours were used once, and twice.
std::string style_of(std::size_t curve) {
  const std::size_t round = curve / kColors;
  return fmt::format("c{}{}", curve % kColors, round == 0 ? "" : round == 1 ? " again" : " third");
}

std::string picture(const std::vector<ScoreCurve>& curves, std::vector<CurvePosition> ScoreCurve::*which,
                    const char* title, const char* x_name, const char* y_name, bool diagonal) {
  const auto x = [](double value) { return kLeft + value * kSide; };
  const auto y = [](double value) { return kTop + (1 - value) * kSide; };
  const double width = kLeft + kSide + kRight, height = kTop + kSide + kBottom;
  std::string text = fmt::format(
      "<figure class=\"chart\"><figcaption>{}</figcaption><div class=\"plot\"><svg viewBox=\"0 0 {:.0f} "
      "{:.0f}\" role=\"img\" aria-label=\"{}\">",
      title, width, height, title);
  for (int i = 0; i <= 5; ++i) {
    const double at = 0.2 * i;
    text += fmt::format(
        "<path class=\"grid\" d=\"M{0:.0f} {1:.1f}H{2:.0f}M{3:.1f} {4:.0f}V{5:.0f}\"/><text x=\"{6:.0f}\" "
        "y=\"{7:.1f}\" text-anchor=\"end\">{8:.1f}</text><text "
        "x=\"{3:.1f}\" y=\"{9:.0f}\" text-anchor=\"middle\">{8:.1f}</text>",
        x(0), y(at), x(1), x(at), y(0), y(1), kLeft - 6, y(at) + 4, at, y(0) + 16);
  }
  text += fmt::format(
      "<text x=\"{:.0f}\" y=\"{:.0f}\" text-anchor=\"middle\">{}</text><text transform=\"translate(11 "
      "{:.0f}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
      x(0.5), height - 3, x_name, y(0.5), y_name);
  if (diagonal)
    text += fmt::format("<path class=\"cross\" d=\"M{:.0f} {:.0f}L{:.0f} {:.0f}\"/>", x(0), y(0), x(1), y(1));
  for (std::size_t i = 0; i < curves.size(); ++i) {
    std::string path;
    for (const CurvePosition& position : curves[i].*which)
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x(position.x), y(position.y));
    if (!path.empty())
      text += fmt::format("<path class=\"curve {}\" d=\"{}\"><title>{}</title></path>", style_of(i), path,
                          escaped(curves[i].name));
  }
  return text + "</svg></div></figure>\n";
}

}  // namespace

std::string score_pictures(const std::vector<ScoreCurve>& curves) {
  Table table{.head = {"curve", "area under ROC", "average precision"}, .rows = {}};
  for (std::size_t i = 0; i < curves.size(); ++i)
    table.rows.push_back(
        {{fmt::format("<span class=\"key {}\">{}</span>", style_of(i), escaped(curves[i].name)), false,
          "wrap"},
         number_cell(curves[i].auc),
         number_cell(curves[i].average_precision)});
  return "<div class=\"charts\">\n" +
         picture(curves, &ScoreCurve::roc, "ROC", "false positive rate", "true positive rate", true) +
         picture(curves, &ScoreCurve::precision_recall, "Precision and recall", "recall", "precision",
                 false) +
         "</div>\n" + html_of(table);
}

}  // namespace lockstep::report

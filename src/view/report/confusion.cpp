// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "io/png_file.h"
#include "view/plot/label_text.h"
#include "view/report/sections.h"

namespace lockstep::report {

namespace {

constexpr std::int64_t kMostCells = 30;  // classes whose matrix is a table; of more it is a picture
constexpr std::size_t kMostPairs = 12;
constexpr double kWidestHead = 80;  // of a column, in pixels of labels

struct Matrix {
  const std::vector<double>& counts;
  std::int64_t classes;
  const std::vector<std::string>& names;

  double at(std::int64_t row, std::int64_t column) const {
    const double count = counts[static_cast<std::size_t>(row * classes + column)];
    return std::isfinite(count) ? count : 0;
  }
  double row(std::int64_t row) const {
    double sum = 0;
    for (std::int64_t column = 0; column < classes; ++column) sum += at(row, column);
    return sum;
  }
  bool has_names() const { return std::ssize(names) == classes; }
  std::string name(std::int64_t index) const {
    return has_names() ? names[static_cast<std::size_t>(index)] : std::to_string(index);
  }
  /// Columns of long names have numbers instead, which the rows show, too.
  bool has_numbers() const {
    return has_names() &&
           std::ranges::any_of(names, [](const std::string& name) { return text_width(name) > kWidestHead; });
  }
};

std::string cells(const Matrix& matrix, const std::string& id) {
  const double most = std::max(1.0, *std::ranges::max_element(matrix.counts));
  std::string text = fmt::format(
      "<input class=\"switch\" type=\"checkbox\" id=\"{0}\"><label for=\"{0}\">shares of each row "
      "(recall)</label>\n<div class=\"scroll\"><table class=\"cm\">\n<thead><tr><th></th><th "
      "colspan=\"{1}\">predicted</th></tr><tr><th class=\"row\">true</th>",
      id, matrix.classes);
  const bool numbers = matrix.has_numbers();
  for (std::int64_t c = 0; c < matrix.classes; ++c)
    text += numbers ? fmt::format("<th scope=\"col\" title=\"{}\">{}</th>", escaped(matrix.name(c)), c)
                    : fmt::format("<th scope=\"col\">{}</th>", escaped(matrix.name(c)));
  text += "<th>total</th></tr></thead>\n<tbody>\n";
  for (std::int64_t r = 0; r < matrix.classes; ++r) {
    const double sum = matrix.row(r);
    text += fmt::format("<tr><th class=\"row{}\" scope=\"row\">{}{}</th>", numbers ? " wide" : "",
                        escaped(matrix.name(r)), numbers ? fmt::format(" <small>{}</small>", r) : "");
    for (std::int64_t c = 0; c < matrix.classes; ++c) {
      const double count = matrix.at(r, c), share = sum > 0 ? count / sum : 0;
      std::string style = count == 0 ? "zero" : "";
      if (count > 0 && count / most > 0.62) style += " deep";
      if (count > 0 && share > 0.62) style += " deepr";
      if (r == c) style += " right";
      text += fmt::format(
          "<td class=\"{}\" style=\"--v:{:.3f};--r:{:.3f}\" title=\"{} predicted as {}: {:.10g} of "
          "{:.10g}\"><span class=\"count\">{:.10g}</span><span class=\"share\">{:.1f}%</span></td>",
          style, count / most, share, escaped(matrix.name(r)), escaped(matrix.name(c)), count, sum, count,
          100 * share);
    }
    text += fmt::format("<th>{:.10g}</th></tr>\n", sum);
  }
  return text + "</tbody></table></div>\n";
}

/// A pixel per cell, by shares of the row.
std::string picture(const Matrix& matrix) {
  Picture picture(static_cast<int>(matrix.classes), static_cast<int>(matrix.classes), 1, 255);
  for (std::int64_t r = 0; r < matrix.classes; ++r) {
    const double sum = matrix.row(r);
    for (std::int64_t c = 0; c < matrix.classes; ++c)
      if (sum > 0)
        *picture.at(static_cast<int>(c), static_cast<int>(r)) =
            static_cast<std::uint8_t>(std::lround(255 * (1 - std::sqrt(matrix.at(r, c) / sum))));
  }
  return fmt::format(
      "<p>Rows: the true class; columns: the predicted one; darkness: the square root of the share of the "
      "row.</p>\n<img class=\"matrix\" alt=\"confusion matrix\" src=\"data:image/png;base64,{}\">\n",
      base64(png_of(picture)));
}

std::string pairs(const Matrix& matrix) {
  struct Pair {
    std::int64_t row, column;
    double count;
  };
  std::vector<Pair> all;
  for (std::int64_t r = 0; r < matrix.classes; ++r)
    for (std::int64_t c = 0; c < matrix.classes; ++c)
      if (r != c && matrix.at(r, c) > 0) all.push_back({r, c, matrix.at(r, c)});
  if (all.empty()) return "<p>No sample is in a wrong class.</p>\n";
  std::ranges::stable_sort(all, std::ranges::greater{}, &Pair::count);
  Table table{.head = {"true", "predicted", "samples", "of the true class"}, .rows = {}};
  for (std::size_t i = 0; i < std::min(kMostPairs, all.size()); ++i)
    table.rows.push_back({{escaped(matrix.name(all[i].row)), false, "wrap"},
                          {escaped(matrix.name(all[i].column)), false, "wrap"},
                          {fmt::format("{:.10g}", all[i].count), true},
                          {fmt::format("{:.1f} %", 100 * all[i].count / matrix.row(all[i].row)), true}});
  return "<h3>Confused most often</h3>\n" + html_of(table);
}

}  // namespace

std::string confusion_html(const std::vector<double>& counts, std::int64_t classes,
                           const std::vector<std::string>& names, const std::string& id) {
  const Matrix matrix{counts, classes, names};
  return (classes <= kMostCells ? cells(matrix, id) : picture(matrix)) + pairs(matrix);
}

}  // namespace lockstep::report

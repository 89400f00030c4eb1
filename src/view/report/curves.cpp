// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace lockstep::report {

namespace {

// Points of all curves together, 20 to 40 bytes each, so that a page stays well below 5 MB.
constexpr std::int64_t kFinePoints = 60'000, kCoarsePoints = 9'000;
constexpr std::int64_t kMostFine = 3'000, kLeastFine = 48, kMostCoarse = 240, kLeastCoarse = 24;
constexpr std::size_t kColors = 8;

std::string prefix_of(const std::string& tag) {
  const std::size_t slash = tag.find('/');
  return slash == std::string::npos ? "" : tag.substr(0, slash);
}

/// Tags in their order: first what evaluations give too, with the loss in front, then what training alone
/// gives, then families ("weights/..."), then what a clock measures.
std::vector<std::pair<std::string, std::string>> grouped_tags(const std::vector<CurveRun>& runs) {
  std::vector<std::string> tags;
  std::map<std::string, bool> evaluated;
  std::map<std::string, int> family;
  for (const CurveRun& run : runs)
    for (const MetricSeries& series : run.records->series) {
      if (std::ranges::find(tags, series.tag) == tags.end()) {
        tags.push_back(series.tag);
        ++family[prefix_of(series.tag)];
      }
      evaluated[series.tag] |= series.split == "eval";
    }
  const auto group_of = [&](const std::string& tag) -> std::string {
    if (is_clock_value(tag)) return "Speed";
    if (evaluated[tag] || tag == "loss" || tag == "accuracy") return "Loss and metrics";
    if (const std::string prefix = prefix_of(tag); !prefix.empty() && family[prefix] > 1) return prefix;
    return "Training";
  };
  const auto place = [](const std::string& group) {
    return group == "Loss and metrics" ? 0 : group == "Training" ? 1 : group == "Speed" ? 3 : 2;
  };
  std::vector<std::pair<std::string, std::string>> all;
  for (const std::string& tag : tags) all.emplace_back(group_of(tag), tag);
  std::ranges::stable_sort(all, [&](const auto& a, const auto& b) {
    if (place(a.first) != place(b.first)) return place(a.first) < place(b.first);
    return place(a.first) == 2 && a.first < b.first;
  });
  return all;
}

std::string numbers(const ThinCurve& curve, double ThinPoint::*member) {
  std::vector<double> values;
  values.reserve(curve.points.size());
  for (const ThinPoint& point : curve.points) values.push_back(point.*member);
  return json_numbers(values);
}

/// Steps with all their digits.
std::string steps_json(const ThinCurve& curve) {
  std::string text = "[";
  for (const ThinPoint& point : curve.points)
    text += fmt::format("{}{:.10g}", text.size() > 1 ? "," : "", std::floor(point.step));
  return text + "]";
}

std::string curve_json(const ChartCurve& curve) {
  std::string text =
      fmt::format("{{\"name\":{},\"color\":{},\"eval\":{},\"run\":{},\"values\":{},\"x\":{},\"y\":{}",
                  json_text(curve.name), curve.color, curve.is_eval, curve.run, curve.fine.values,
                  steps_json(curve.fine), numbers(curve.fine, &ThinPoint::mean));
  if (curve.fine.thinned) {
    text += fmt::format(",\"low\":{},\"high\":{},\"n\":[", numbers(curve.fine, &ThinPoint::low),
                        numbers(curve.fine, &ThinPoint::high));
    for (std::size_t i = 0; i < curve.fine.points.size(); ++i)
      text += fmt::format("{}{}", i > 0 ? "," : "", curve.fine.points[i].values);
    text += "]";
  }
  return text + "}";
}

std::string legend_of(const CurveChart& chart) {
  std::string text = "<p class=\"legend\">";
  for (const ChartCurve& curve : chart.curves)
    text += fmt::format("<span class=\"key c{}{}\">{}</span> ", curve.color,
                        curve.is_eval && chart.curves.size() > 1 ? " eval" : "", escaped(curve.name));
  return text + "</p>";
}

}  // namespace

std::vector<CurveChart> charts_of(const std::vector<CurveRun>& runs) {
  std::size_t curves = 0;
  for (const CurveRun& run : runs) curves += run.records->series.size();
  const auto share = [&](std::int64_t all, std::int64_t least, std::int64_t most) {
    return static_cast<int>(
        std::clamp(all / static_cast<std::int64_t>(std::max<std::size_t>(1, curves)), least, most));
  };
  const int fine = share(kFinePoints, kLeastFine, kMostFine),
            coarse = share(kCoarsePoints, kLeastCoarse, kMostCoarse);
  std::vector<CurveChart> charts;
  for (const auto& [group, tag] : grouped_tags(runs)) {
    CurveChart& chart = charts.emplace_back(CurveChart{tag, group, {}});
    for (std::size_t run = 0; run < runs.size(); ++run)
      for (const char* split : {"train", "eval"}) {
        const MetricSeries* const series = runs[run].records->find(split, tag);
        if (series == nullptr) continue;
        const bool is_eval = split == std::string_view("eval");
        const std::string name = runs.size() == 1 ? (is_eval ? "evaluation" : "training")
                                                  : runs[run].name + (is_eval ? ", evaluation" : "");
        const std::size_t color = runs.size() == 1 ? (is_eval ? 1 : 0) : run % kColors;
        chart.curves.push_back({name, static_cast<int>(color), is_eval, run, thin_curve(*series, fine),
                                thin_curve(*series, coarse)});
      }
  }
  return charts;
}

std::string thinning_note(const std::vector<CurveChart>& charts) {
  std::int64_t values = 0, points = 0, no_numbers = 0;
  for (const CurveChart& chart : charts)
    for (const ChartCurve& curve : chart.curves) {
      no_numbers += curve.fine.no_numbers;
      if (!curve.fine.thinned) continue;
      values += curve.fine.values;
      points += static_cast<std::int64_t>(curve.fine.points.size());
    }
  std::string text;
  if (values > 0)
    text += fmt::format(
        "Thinned: {} points stand for {} recorded values. Each has the least, the greatest and the mean of "
        "its values, so "
        "extremes are shown; the shaded band is between them. ",
        grouped(points), grouped(values));
  if (no_numbers > 0)
    text += fmt::format("{} recorded value{} no finite number{}: gaps in the curves.", grouped(no_numbers),
                        no_numbers == 1 ? " is" : "s are", no_numbers == 1 ? "" : "s");
  return text;
}

std::string charts_html(const std::vector<CurveChart>& charts) {
  std::string text, group;
  for (std::size_t i = 0; i < charts.size(); ++i) {
    const CurveChart& chart = charts[i];
    if (i == 0 || chart.group != group) {
      group = chart.group;
      text += fmt::format("{}<h3>{}</h3>\n<div class=\"charts\">\n", i > 0 ? "</div>\n" : "", escaped(group));
    }
    text += fmt::format(
        "<figure class=\"chart\" data-chart=\"{}\"><figcaption>{}</figcaption>{}<div "
        "class=\"plot\">{}</div></figure>\n",
        i, escaped(chart.tag), legend_of(chart), static_chart(chart));
  }
  return charts.empty() ? text : text + "</div>\n";
}

std::string charts_json(const std::vector<CurveChart>& charts, const std::vector<CurveRun>& runs) {
  std::string text = "{\"runs\":[";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& epoch = runs[i].records->steps_per_epoch;
    text += fmt::format("{}{{\"name\":{},\"epoch\":{},\"steps\":{},\"hours\":{}}}", i > 0 ? "," : "",
                        json_text(runs[i].name), epoch ? std::to_string(*epoch) : "null",
                        json_numbers(runs[i].clock.steps), json_numbers(runs[i].clock.hours));
  }
  text += "],\"charts\":[";
  for (std::size_t i = 0; i < charts.size(); ++i) {
    text += fmt::format("{}{{\"tag\":{},\"curves\":[", i > 0 ? "," : "", json_text(charts[i].tag));
    for (std::size_t k = 0; k < charts[i].curves.size(); ++k)
      text += (k > 0 ? ",\n" : "") + curve_json(charts[i].curves[k]);
    text += "]}";
  }
  return text + "]}";
}

}  // namespace lockstep::report

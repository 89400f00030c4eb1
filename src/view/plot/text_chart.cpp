// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "view/plot/text_plot.h"

namespace lockstep {

std::string text_chart(const Chart& chart, const TextStyle& style) {
  TextPlot plot{.title = chart.title,
                .curves = {{"", [&](int count) { return chart_columns(chart, count); }}},
                .values = value_axis(chart_columns(chart, 512), 4),
                .x = step_axis(chart, std::max(2, style.width / 12)),
                .x_text = [&chart](double step) { return step_text(chart, step); },
                .x_name = chart.growing ? chart.growing->name : "step"};
  if (chart.steps_per_epoch > 0)
    plot.x_name += fmt::format("; {} steps are an epoch, {:.4g} epochs in all", chart.steps_per_epoch,
                               static_cast<double>(chart.steps) / static_cast<double>(chart.steps_per_epoch));
  return fmt::format("{}\n", fmt::join(text_plot(plot, style), "\n"));
}

}  // namespace lockstep

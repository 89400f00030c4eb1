// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "view/report/network_view.h"
#include "view/report/sections.h"

namespace lockstep::report {

namespace {

constexpr std::string_view kHowToMeasure =
    "Times were not measured. The hook profile measures them: add \"- profile: {first_step: 100, last_step: "
    "104}\" to hooks: and "
    "train some steps.";

std::string flops_text(double flops) {
  if (!std::isfinite(flops)) return "–";
  return fmt::format("{:.3f}", flops * 1e-6);
}

Cell optional(double value, const char* otherwise) {
  return std::isfinite(value) ? Cell{fmt::format("{:.3f}", value), true} : Cell{otherwise, true};
}

Table layer_table(const NetworkView& network) {
  const bool measured = !network.measured.empty();
  Table table{.head = {"layer", "kind", "output", "parameters", "MFLOP / sample", "forward ms", "backward ms",
                       "share of time"},
              .rows = {}};
  double total = 0;
  for (const NetworkLayer& layer : network.layers)
    for (const double ms : {layer.forward_ms, layer.backward_ms}) total += std::isfinite(ms) ? ms : 0;
  const char* const otherwise = measured ? "–" : "not measured";
  for (const NetworkLayer& layer : network.layers) {
    std::string kind = escaped(layer.kind);
    if (layer.fused) kind += " <small>fused</small>";
    if (layer.shared_with >= 0)
      kind += fmt::format(" <small>variables of {}</small>",
                          escaped(network.layers[static_cast<std::size_t>(layer.shared_with)].name));
    std::string parameters = layer.parameters >= 0 ? grouped(layer.parameters) : "–";
    if (layer.frozen > 0) parameters += " <small>frozen</small>";
    const double own = (std::isfinite(layer.forward_ms) ? layer.forward_ms : 0) +
                       (std::isfinite(layer.backward_ms) ? layer.backward_ms : 0);
    table.rows.push_back(
        {text_cell(layer.name),
         {kind},
         text_cell(layer.shape.empty() ? "–" : layer.shape),
         {parameters, true},
         {flops_text(layer.flops), true},
         optional(layer.forward_ms, otherwise),
         optional(layer.backward_ms, otherwise),
         {measured && own > 0 ? fmt::format("<span class=\"meter\" style=\"--share:{:.4f}\">{:.1f} %</span>",
                                            own / total, 100 * own / total)
                              : otherwise,
          true}});
  }
  table.rows.push_back({text_cell("total"),
                        {},
                        {},
                        {network.parameters >= 0 ? grouped(network.parameters) : "–", true},
                        {flops_text(network.flops), true},
                        {},
                        {},
                        {}});
  table.row_classes.assign(network.layers.size(), "");
  table.row_classes.emplace_back("total");
  return table;
}

}  // namespace

Section network_section(const ReportRun&, const NetworkView& network) {
  Section section{"network", "Network", {}};
  if (!network.problem.empty()) section.body += missing(network.problem);
  if (network.layers.empty()) return section;
  section.body += network_diagram(network);
  section.body += network.measured.empty()
                      ? missing(kHowToMeasure)
                      : fmt::format(
                            "<p>Times are from {}: milliseconds of threads per step, "
                            "summed over all microshards and ranks. Where microshards synchronise "
                            "(batch_norm), waiting for other ranks is in it.</p>\n",
                            escaped(network.measured));
  section.body += html_of(layer_table(network));
  return section;
}

}  // namespace lockstep::report

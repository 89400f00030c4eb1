// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/shown_text.h"
#include "session/number_text.h"
#include "session/progress.h"
#include "view/report/network_view.h"
#include "view/report/sections.h"

namespace lockstep::report {

namespace {

constexpr std::string_view kControls =
    "<div class=\"controls\" id=\"controls\" hidden>\n"
    "<label>smoothing <input type=\"range\" id=\"smooth\" min=\"0\" max=\"0.99\" step=\"0.01\" "
    "value=\"0.6\"><output "
    "id=\"smooth-value\">0.60</output></label>\n"
    "<label>x axis <select id=\"axis\"><option value=\"steps\">steps</option><option "
    "value=\"epochs\">epochs</option><option "
    "value=\"hours\">hours in jobs</option></select></label>\n"
    "<label><input type=\"checkbox\" id=\"log\"> log scale</label>\n"
    "<label><input type=\"search\" id=\"filter\" placeholder=\"filter by tag\" aria-label=\"filter by "
    "tag\"></label>\n"
    "<small>drag to zoom, double click to reset</small></div>\n";

}  // namespace

Section curves_section(const std::vector<CurveChart>& charts, const std::vector<CurveRun>& runs) {
  Section section{"curves", "Curves", {}};
  std::int64_t records = 0, passed_over = 0;
  bool exists = false;
  for (const CurveRun& run : runs) {
    records += run.records->records;
    passed_over += run.records->passed_over;
    exists |= run.records->exists;
  }
  if (charts.empty()) {
    section.body = missing(
        exists ? "metrics.jsonl holds no record yet."
               : "There is no metrics.jsonl: the run has recorded nothing yet, or summary.metrics is false.");
    return section;
  }
  section.body = std::string(kControls);
  std::string note = fmt::format("{} record{}.", grouped(records), records == 1 ? "" : "s");
  if (passed_over > 0)
    note += fmt::format(" {} line{} passed over that {} no complete record.", grouped(passed_over),
                        passed_over == 1 ? " was" : "s were", passed_over == 1 ? "is" : "are");
  note += fmt::format(" {}", thinning_note(charts));
  section.body += fmt::format("<p><small>{}</small></p>\n", note) + charts_html(charts);
  return section;
}

Page report_page(const ReportRun& run, const PredictionLimits& limits) {
  const std::vector<CurveRun> runs{{run.name, &run.records, step_clock(run.overview.jobs)}};
  const std::vector<CurveChart> charts = charts_of(runs);
  OpenedRun opened = open_run(run.dir, limits.mistakes > 0, limits.checkpoint);
  const NetworkView network = network_view(opened, run.dir);
  const Predictions predictions = predict_for_report(opened, limits);
  Page page{.title = run.name,
            .badge = state_badge(run.overview.progress),
            .subtitle = {},
            .sections = {},
            .data = charts_json(charts, runs)};
  page.subtitle = fmt::format("{} · report of {}", escaped(run.dir), clock_text(run.now));
  page.sections = {headline_section(run),
                   curves_section(charts, runs),
                   evaluation_section(run, predictions),
                   mistakes_section(predictions),
                   network_section(run, network),
                   summaries_section(run),
                   throughput_section(run),
                   timeline_section(run),
                   checkpoints_section(run),
                   configuration_section(run),
                   log_section(run)};
  return page;
}

std::string report_text(const ReportRun& run) {
  const RunProgress& progress = run.overview.progress;
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += shown_format("{:<12}{}\n", name, value);
  };
  line("run", run.dir);
  line("state", run_state_text(progress, run.last_job()));
  line("steps", shown_format("{}{}", std::max(progress.step, run.records.last_step),
                             progress.total_steps > 0 ? shown_format(" of {}", progress.total_steps) : ""));
  line("jobs", shown_format("{}, {} in them, {:.1f} % effective", progress.jobs,
                            format_duration(progress.job_seconds), 100 * progress.effective_share()));
  for (const MetricSeries& series : run.records.series) {
    const BestValue best = best_value(series, run.direction(series.tag));
    if (series.split != "eval" || is_clock_value(series.tag)) continue;
    line(shown_format("{} ", series.tag),
         shown_format(
             "{}last {} at step {}",
             best.exists ? shown_format("best {} at step {}, ", number_text(best.value), best.step) : "",
             number_text(best.last), best.last_step));
  }
  line("records", std::to_string(run.records.records));
  return text;
}

}  // namespace lockstep::report

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <limits>

#include "core/error.h"
#include "view/report/sections.h"
#include "view/run/checkpoint_rows.h"

namespace lockstep::report {

namespace {

/// Checkpoints are read whole, and their checksums computed, as long as they have at most kVerifiedBytes
/// together.
constexpr std::uintmax_t kVerifiedBytes = 256'000'000;

}  // namespace

Section checkpoints_section(const ReportRun& run) {
  Section section{"checkpoints", "Checkpoints", {}};
  std::vector<KeptCheckpoint> all;
  try {
    all = checkpoints_of(run.dir);
  } catch (const Error& error) {
    section.body = missing("The run has no checkpoint.");
    return section;
  }
  Table table{.head = {"step", "epoch", "written", "MB", "metric", "kept because", "state"}, .rows = {}};
  std::uintmax_t left = kVerifiedBytes;
  bool some_unread = false;
  for (auto kept = all.rbegin(); kept != all.rend(); ++kept) {  // the newest first
    CheckpointRow row = checkpoint_row(*kept, false);
    const bool verify = row.damage.empty() && row.bytes <= left;
    if (verify) {
      left -= row.bytes;
      row.damage = checkpoint_damage(kept->path);
    }
    some_unread |= !verify && row.damage.empty();
    const std::string epoch = row.epoch ? grouped(*row.epoch + (row.inside ? 1 : 0)) : "?";
    table.rows.push_back({count_cell(kept->step),
                          {epoch, true},
                          text_cell(utc_text(kept->time)),
                          {fmt::format("{:.1f}", 1e-6 * static_cast<double>(row.bytes)), true},
                          number_cell(kept->metric.value_or(std::numeric_limits<double>::quiet_NaN())),
                          text_cell(why_kept(*kept)),
                          {!row.damage.empty() ? fmt::format("<span class=\"badge bad\">{}</span> {}",
                                                             fault_word(kept->path), escaped(row.damage))
                           : verify            ? "<span class=\"badge good\">intact</span>"
                                               : "not read"}});
  }
  section.body = html_of(table);
  if (some_unread)
    section.body += fmt::format(
        "<p>Checkpoints beyond {} MB together were not read; <code>lockstep checkpoint verify {}</code> "
        "reads all.</p>\n",
        kVerifiedBytes / 1'000'000, escaped(run.dir));
  return section;
}

}  // namespace lockstep::report

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The warnings and errors of lockstep.log.
#include <fmt/format.h>

#include <deque>
#include <filesystem>

#include "core/error.h"
#include "io/input_file.h"
#include "view/report/sections.h"

namespace lockstep::report {

namespace {

constexpr std::size_t kMostLines = 200, kMostBytes = 2000;

/// "2026-01-31T23:59:59.123+00:00 warning text": the text after the time begins with the level.
std::string_view level_of(std::string_view line) {
  const std::size_t space = line.find(' ');
  if (space == std::string_view::npos || space < 19 || line[4] != '-') return {};
  line.remove_prefix(space + 1);
  return line.substr(0, line.find(' '));
}

}  // namespace

Section log_section(const ReportRun& run) {
  Section section{"log", "Warnings and errors", {}};
  const std::string path = (std::filesystem::path(run.dir) / "lockstep.log").string();
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) {
    section.body = missing("The run directory has no lockstep.log.");
    return section;
  }
  std::deque<std::string> kept;
  std::int64_t all = 0, lines_read = 0;
  bool continues = false;
  try {
    InputFile file(path);
    LineReader lines(file);
    for (std::string_view line; lines.next(line); ++lines_read) {
      const std::string_view level = level_of(line);
      const bool wanted =
          level.empty() ? continues : level == "warning" || level == "error" || level == "critical";
      continues = wanted;
      if (!wanted) continue;
      if (!level.empty()) ++all;
      kept.emplace_back(line.substr(0, kMostBytes));
      if (kept.size() > kMostLines) kept.pop_front();
    }
  } catch (const Error& error) {
    section.body = missing(error.what());
    return section;
  }
  if (all == 0) {
    section.body = fmt::format("<p>None in {} lines of lockstep.log.</p>\n", grouped(lines_read));
    return section;
  }
  section.body = fmt::format(
      "<p>{} in {} lines of lockstep.log{}.</p>\n<pre class=\"log\">", grouped(all), grouped(lines_read),
      kept.size() == kMostLines ? fmt::format("; the last {} lines of them", kMostLines) : "");
  for (const std::string& line : kept) section.body += escaped(line) + "\n";
  section.body += "</pre>\n";
  return section;
}

}  // namespace lockstep::report

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

#include "config/yaml_node.h"
#include "run/sections/config_values.h"
#include "view/report/config_text.h"
#include "view/report/sections.h"

namespace lockstep::report {

std::vector<ConfigValue> values_of_config(const std::string& text, const std::string& path) {
  const Node root = parse_yaml(text, path);
  const Node* base = root.find("base_directory");
  return config_values(root, base != nullptr ? base->text : "");
}

std::string yaml_html(std::string_view text) {
  std::string out = "<pre class=\"yaml\">";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = line.find(':');
    const std::size_t begin = line.find_first_not_of(" -");
    if (colon == std::string_view::npos || begin == std::string_view::npos || begin >= colon ||
        line.substr(begin, colon - begin).find_first_of("\"'#{[") != std::string_view::npos)
      out += escaped(line) + "\n";
    else
      out += fmt::format("{}<b>{}</b>{}\n", escaped(line.substr(0, begin)),
                         escaped(line.substr(begin, colon - begin)), escaped(line.substr(colon)));
  }
  return out + "</pre>\n";
}

namespace {

std::string changes_html(const ReportRun& run) {
  Table table{.head = {"job", "key", "before", "from this job on"}, .rows = {}};
  for (std::size_t i = 1; i < run.job_configs.size(); ++i) {
    const JobConfig &before = run.job_configs[i - 1], &now = run.job_configs[i];
    for (const ConfigDifference& difference :
         config_differences(values_of_config(before.text, before.path), values_of_config(now.text, now.path)))
      table.rows.push_back({count_cell(now.job),
                            {fmt::format("<code>{}</code>", escaped(difference.path))},
                            {fmt::format("<code>{}</code>", escaped(difference.before.value_or("")))},
                            {fmt::format("<mark>{}</mark>", escaped(difference.now.value_or("")))}});
  }
  if (run.job_configs.size() < 2) return {};
  if (table.rows.empty())
    return fmt::format("<p>All {} jobs ran with the same values.</p>\n", run.job_configs.size());
  return "<h3>Changed between jobs</h3>\n" + html_of(table);
}

}  // namespace

Section configuration_section(const ReportRun& run) {
  Section section{"configuration", "Configuration", {}};
  if (run.config_text.empty()) {
    section.body = missing("The run directory has no config.yaml.");
    return section;
  }
  try {
    section.body += changes_html(run);
  } catch (const Error& error) {
    section.body +=
        missing(fmt::format("The configurations of the jobs cannot be compared: {}", error.what()));
  }
  section.body += "<details><summary>Resolved configuration of the last job (config.yaml)</summary>" +
                  yaml_html(run.config_text) + "</details>\n";
  return section;
}

}  // namespace lockstep::report

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/run_description_hook.h"

#include <chrono>

#include "io/event_trim.h"
#include "session/hook_context.h"

namespace lockstep {

namespace {

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// A block of code in Markdown.
std::string indented(const std::string& text) {
  std::string block;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    block += "    " + text.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return block;
}

}  // namespace

void RunDescriptionHook::after_create_session(HookContext& context) {
  RunReports& reports = context.reports();
  const std::int64_t step = context.global_step();
  if (!options_.graph_def.empty()) reports.graph(options_.graph_def);
  std::vector<SummaryValue> values;
  if (options_.hparams) {
    HParamsSession session = *options_.hparams;
    session.start_seconds = now_seconds();
    values = hparams_start(session);
  }
  if (!options_.configuration.empty())
    values.push_back(text_value(kConfigurationTag, indented(options_.configuration)));
  if (!values.empty()) reports.summary(RunReports::Split::train, step, std::move(values));
}

void RunDescriptionHook::end(HookContext& context) {
  if (!options_.hparams || context.interruption().any()) return;
  context.reports().summary(RunReports::Split::train, context.global_step(),
                            {hparams_end(HParamsStatus::success, now_seconds())});
}

}  // namespace lockstep

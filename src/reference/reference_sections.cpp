// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "core/range.h"
#include "data/data_options.h"
#include "data/reader_table.h"
#include "data/step_window.h"
#include "data/transform_list.h"
#include "data/whitening.h"
#include "model/initializer.h"
#include "model/layer_table.h"
#include "model/metric.h"
#include "optim/average_rule.h"
#include "optim/optimizer_options.h"
#include "optim/variable_groups.h"
#include "reference/config_reference.h"
#include "run/sections/experiment_options.h"
#include "run/sections/sweep_options.h"
#include "session/hooks/hook_table.h"
#include "session/summaries/summary_part.h"
#include "train/model.h"

namespace lockstep {

namespace {

/// One section per entry of another room's table: "Layer conv2d".
template <typename Entries>
void add_entries(std::vector<ReferenceSection>& sections, std::string_view what, const Entries& entries) {
  for (const auto& entry : entries)
    sections.push_back({fmt::format("{} {}", what, entry.name), std::string(entry.help), entry.table});
}

}  // namespace

std::vector<ReferenceSection> reference_sections() {
  std::vector<ReferenceSection> sections;
  sections.push_back({"Section data",
                      "What to read. Beside these keys stand the options of the reader that `format` names.",
                      data_table()});
  sections.push_back({"Copies on each node", "Options of section data, beside `format`: see docs/staging.md.",
                      stage_table()});
  sections.push_back({"Every data set", "Options of data, data.train and data.eval beside the reader's.",
                      transforms_table()});
  sections.push_back({"Samples of a set",
                      "These options stand beside those of any reader: in section data for both sets, under "
                      "`train` or `eval` for one. See docs/data.md.",
                      choice_table()});
  sections.push_back({"Every training set",
                      "An option of data and data.train; it has no effect on the evaluation set.",
                      mixing_table()});
  sections.push_back({"Section data.mix", "See docs/augmentation.md.", mixing_keys()});
  sections.push_back({"Source",
                      "An entry of data.sources, beside the options of its reader. See docs/data.md.",
                      source_table()});
  add_entries(sections, "Reader", reader_table());
  sections.push_back({"Section data.window", "The option window of the reader hdf5. See docs/data_arrays.md.",
                      step_window_keys()});
  add_entries(sections, "Transform", transform_table());
  add_entries(sections, "Whitening", whiten_table());
  sections.push_back({"Section model", "What to learn.", model_table()});
  sections.push_back(
      {"Every layer",
       "A layer is written as its name alone (`relu`) or with options (`dropout: {rate: 0.2}`). "
       "These options every layer takes beside its own.",
       common_layer_table()});
  add_entries(sections, "Layer", layer_table());
  add_entries(sections, "Initializer", initializer_table());
  sections.push_back({"Head", "An item of model.heads. See docs/layers.md.", head_table()});
  add_entries(sections, "Loss", loss_table());
  sections.push_back({"Every metric",
                      "Metrics stand in `eval.metrics`; see docs/metrics.md. These options every metric "
                      "takes beside its own.",
                      common_metric_table()});
  add_entries(sections, "Metric", metric_table());
  sections.push_back({"Regularization", "An item of model.regularization.", regularization_table()});
  sections.push_back({"Section optimizer",
                      "The name of a rule, alone or with its options. These keys stand beside the name: "
                      "`optimizer: {adam: {learning_rate: 0.001}, shard: true}`.",
                      optimizer_section_table()});
  add_entries(sections, "Optimizer", optimizer_table());
  sections.push_back({"Group", "An item of optimizer.groups. See docs/optimizers.md.", group_table()});
  sections.push_back(
      {"Every schedule",
       "An option of type \"number or schedule\" takes a schedule: its name with these options beside "
       "its own. See docs/schedules.md.",
       common_schedule_table()});
  add_entries(sections, "Schedule", schedule_table());
  add_entries(sections, "Warm-up", warmup_table());
  add_entries(sections, "Average", average_table());
  add_entries(sections, "Summary", summary_parts());
  sections.push_back(
      {"Section hooks",
       "A list; a hook is written as its name alone (`- profile`) or with options "
       "(`- stop_after_seconds: {seconds: 3600}`). They are called in this order. See docs/hooks.md.",
       {}});
  add_entries(sections, "Hook", hook_table());
  sections.push_back({"Section experiment.exports",
                      "A list; an item is written as its name alone (`- latest`) or with options "
                      "(`- best: {metric: accuracy, mode: max}`). See docs/estimator.md.",
                      {}});
  add_entries(sections, "Export", export_table());
  sections.push_back({"Range of a sweep", "A value of sweep.keys that is no list. See docs/sweeps.md.",
                      sweep_range_table()});
  sections.push_back(
      {"Section sweep.halving", "Successive halving. See docs/sweeps.md.", sweep_halving_table()});
  return sections;
}

}  // namespace lockstep

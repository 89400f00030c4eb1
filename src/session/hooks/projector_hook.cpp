// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/projector_hook.h"

#include <algorithm>
#include <span>

#include "core/log.h"
#include "core/message_lines.h"
#include "data/vocabulary.h"
#include "io/projector_files.h"
#include "model/variable_store.h"
#include "session/hook_context.h"
#include "session/run_vocabulary.h"
#include "session/summaries/picture_data.h"
#include "session/summaries/principal_plane.h"

namespace lockstep {

namespace {

/// The most columns of a table with a picture: their eigenvectors take about a second.
constexpr std::int64_t kMostColumns = 1024;

/// The run's vocabulary (word, count) with titles, if it has as many words as the table has rows.
std::string words_of(const std::string& run_dir, std::int64_t rows) {
  const std::optional<Vocabulary> words = run_vocabulary(run_dir);
  return words && words->size() == rows ? "word\tcount\n" + words->file_text() : std::string();
}

/// A picture of each table in the plane of its principal components, of the rows that the projector shows.
void draw_planes(HookContext& context, std::span<const ProjectorTable> tables) {
  if (!context.reports().has_events()) return;
  std::vector<SummaryValue> pictures;
  for (const ProjectorTable& table : tables) {
    if (table.columns > kMostColumns) {
      log_info("{}: no picture of its principal components, because it has more than {} columns", table.name,
               kMostColumns);
      continue;
    }
    const auto count = static_cast<std::size_t>(std::min(table.rows, kProjectorRows) * table.columns);
    const PrincipalPlane plane = principal_plane(table.values.first(count), table.columns);
    if (!plane.x.empty())
      pictures.push_back({"principal_components/" + table.name, picture_data(picture_of(plane))});
  }
  if (pictures.empty()) return;
  context.reports().summary(RunReports::Split::train, context.global_step(), std::move(pictures));
  context.reports().request_flush();
}

}  // namespace

void ProjectorHook::end(HookContext& context) {
  try {
    std::vector<ProjectorTable> tables;
    std::vector<Tensor> kept;
    for (const std::string& name : tables_) {
      const Tensor& values = kept.emplace_back(context.variables().tensor(context.variables().find(name)));
      const std::int64_t rows = values.shape().extents()[0];
      const auto size = static_cast<std::size_t>(values.num_elements());
      tables.push_back({.name = name,
                        .rows = rows,
                        .columns = values.num_elements() / std::max<std::int64_t>(rows, 1),
                        .values = {values.f32(), size},
                        .metadata = words_of(context.run_dir(), rows)});
    }
    if (!tables.empty()) write_projector(context.run_dir(), tables);
    draw_planes(context, tables);
  } catch (const Error& error) {
    log_warning("{}\n  There are no new files for the projector; the run continues.", message_of(error));
  }
}

}  // namespace lockstep

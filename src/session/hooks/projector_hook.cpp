// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/hooks/projector_hook.h"

#include <algorithm>
#include <filesystem>

#include "core/log.h"
#include "io/atomic_file.h"
#include "io/projector_files.h"
#include "session/hook_context.h"
#include "session/run_vocabulary.h"

namespace lockstep {

namespace {

/// The run's vocabulary (word, count) with titles, if it has as many words as the table has rows.
std::string words_of(const std::string& run_dir, std::int64_t rows) {
  std::error_code code;
  if (!std::filesystem::exists(vocabulary_path(run_dir), code)) return {};
  const std::string text = read_whole_file(vocabulary_path(run_dir), ErrorKind::data);
  return std::count(text.begin(), text.end(), '\n') == rows ? "word\tcount\n" + text : std::string();
}

}  // namespace

void ProjectorHook::end(HookContext& context) {
  try {
    std::vector<ProjectorTable> tables;
    std::vector<Tensor> kept;
    for (const std::string& name : tables_) {
      const VariableId id = context.variables().find(name);
      if (id == VariableId::none) continue;
      const Tensor& values = kept.emplace_back(context.variables().tensor(id));
      const std::int64_t rows = values.shape().extents()[0];
      const auto size = static_cast<std::size_t>(values.num_elements());
      tables.push_back({.name = name,
                        .rows = rows,
                        .columns = values.num_elements() / std::max<std::int64_t>(rows, 1),
                        .values = {values.f32(), size},
                        .metadata = words_of(context.run_dir(), rows)});
    }
    if (!tables.empty()) write_projector(context.run_dir(), tables);
  } catch (const Error& error) {
    log_warning("{}\n  There are no new files for the projector; the run continues.", error.what());
  }
}

}  // namespace lockstep

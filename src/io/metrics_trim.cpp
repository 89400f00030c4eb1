// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/metrics_trim.h"

#include <algorithm>
#include <filesystem>

#include "core/log.h"
#include "core/message_lines.h"
#include "io/atomic_file.h"
#include "io/json.h"

namespace lockstep {

void drop_train_record(const std::string& path, std::int64_t step, std::string_view name) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) return;
  try {
    const std::string text = read_whole_file(path, ErrorKind::data);
    std::string kept;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      const std::string_view line = std::string_view(text).substr(begin, end - begin);
      begin = end;
      const Json record = Json::parse_or_null(line);
      const bool drops = record["step"].is_integer() && record["step"].get<std::int64_t>() == step &&
                         record["split"] == "train" && record.contains(name);
      if (!drops) kept += line;
    }
    if (kept.size() < text.size()) write_file_atomically(path, kept, ErrorKind::data);
  } catch (const Error& error) {
    log_warning("{}\n  The record of step {}, the last one of an earlier job, stays.", message_of(error),
                step);
  }
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/gpu_description.h"

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <vector>

#include "core/error.h"
#include "core/hash.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "core/run_file.h"
#include "core/shown_text.h"
#include "io/atomic_file.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

const NamedText* find(std::span<const NamedText> fields, const std::string& name) {
  const auto found = std::ranges::find(fields, name, &NamedText::first);
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

std::string text_of_fields(std::span<const NamedText> fields) {
  std::string text;
  for (const auto& [name, value] : fields) {
    text += name + "\n";
    for (const std::string& line : lines_of(value)) text += "  " + line + "\n";
  }
  return text;
}

std::vector<NamedText> fields_of_text(const std::string& text) {
  std::vector<NamedText> fields;
  for (const std::string& line : lines_of(text))
    if (!line.starts_with("  "))
      fields.emplace_back(line, "");
    else if (!fields.empty())
      fields.back().second += line.substr(2) + "\n";
  return fields;
}

std::string gpu_lines(std::span<const NamedText> fields) {
  std::string text;
  for (const auto& [name, value] : fields) {
    const std::vector<std::string> lines = lines_of(value);
    text += lines.size() == 1
                ? fmt::format("{}: {}\n", name, lines.front())
                : fmt::format("{}: {} lines, hash {:016x}\n", name, lines.size(), hash64(value));
  }
  return text;
}

std::string gpu_changes(std::span<const NamedText> before, std::span<const NamedText> now) {
  std::string changes;
  for (const auto& [name, value] : now) {
    const NamedText* const earlier = find(before, name);
    const std::vector<std::string> mine = lines_of(value),
                                   theirs = lines_of(earlier == nullptr ? "" : earlier->second);
    if (mine == theirs) continue;
    const auto place = static_cast<std::size_t>(std::ranges::mismatch(theirs, mine).in1 - theirs.begin());
    const auto at = [&](const std::vector<std::string>& lines) {
      return place < lines.size() ? lines[place] : std::string("nothing");
    };
    changes += shown_format("\n  {}: {} before, {} now", name, at(theirs), at(mine));
  }
  return changes;
}

void warn_of_wrong_algorithms(const std::string& now, const std::string& before) {
  const std::vector<std::string> known = lines_of(before);
  for (const std::string& line : lines_of(now))
    if (std::ranges::find(known, line) == known.end())
      log_warning("passed over because it computes wrongly on this GPU: {}", line);
}

void keep_gpu_description(const std::string& run_dir, std::span<const NamedText> now) {
  if (now.empty()) return;
  const fs::path folder = fs::path(run_dir) / "configs";
  const std::string path = (folder / "gpu.txt").string();
  std::error_code failed;
  if (fs::exists(path, failed))
    if (const std::string changes = gpu_changes(fields_of_text(read_whole_file(path)), now); !changes.empty())
      log_warning(
          "the last job of this run on GPUs computed with another GPU, other libraries or other algorithms, "
          "so "
          "the bits from here on are not those of an uninterrupted run:{}",
          MessageLines{changes});
  make_run_folder(run_dir, "configs", ErrorKind::config);
  write_file_atomically(path, text_of_fields(now));
}

}  // namespace lockstep

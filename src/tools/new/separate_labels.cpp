// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/separate_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/error.h"
#include "core/message_lines.h"
#include "core/shell_word.h"
#include "core/shown_text.h"
#include "data/readers/csv_options.h"
#include "io/input_file.h"
#include "tools/new/set_files.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

bool is_table_name(const fs::path& file) {
  constexpr std::array<std::string_view, 6> kEndings{".txt", ".csv", ".tsv", ".tab", ".data", ".dat"};
  return std::ranges::find(kEndings, lower_case(file.extension().string())) != kEndings.end();
}

/// The file of labels among `files` that belongs to a file of features; empty: none.
std::string labels_of(const std::string& features, const std::vector<std::string>& files) {
  const fs::path name(features);
  const auto part = part_of(name.stem().string());
  if (!part || part->are_labels || !is_table_name(name)) return "";
  for (const std::string& file : files) {
    const auto other = part_of(fs::path(file).stem().string());
    if (other && other->are_labels && other->rest == part->rest && is_table_name(file)) return file;
  }
  return "";
}

struct Lines {
  std::int64_t count = 0;  ///< that are not blank
  bool have_returns = false;
};

Lines lines_of(const std::string& path) {
  InputFile file(path);
  LineReader lines(file, LineEnds::newline);
  Lines found{.count = 0, .have_returns = has_return(lines.ahead())};
  for (std::string_view line; lines.next(line);)
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) ++found.count;
  return found;
}

struct Pair {
  fs::path features, labels;
};

/// The same of another set: next to it, or in a folder next to that of the training set.
std::optional<Pair> pair_of_set(const fs::path& features, SetKind wanted) {
  const auto own = set_of(features.stem().string());
  const fs::path folder = features.parent_path();
  if (!own || own->set != SetKind::train) return std::nullopt;
  std::vector<fs::path> folders{folder};
  if (const auto set = set_of(folder.filename().string()); set && set->set == SetKind::train)
    for (const std::string& name : contents_of((folder / "..").lexically_normal().string()).folders)
      if (const auto other = set_of(name); other && other->set == wanted && other->rest == set->rest)
        folders.push_back(folder.parent_path() / name);
  for (const fs::path& place : folders) {
    const std::vector<std::string> files = contents_of(place.string()).files;
    for (const std::string& file : files) {
      const auto set = set_of(fs::path(file).stem().string());
      if (!set || set->set != wanted || set->rest != own->rest) continue;
      if (const std::string labels = labels_of(file, files); !labels.empty())
        return Pair{place / file, place / labels};
    }
  }
  return std::nullopt;
}

/// The command that writes both to `output`. The names of columns are in both files, or in one.
std::string join_command(const Pair& pair, const TableContents& table, std::int64_t extra_labels,
                         const fs::path& output, bool have_returns) {
  const std::string features = shell_word(pair.features.string()), labels = shell_word(pair.labels.string());
  const char delimiter = table.delimiter == kCsvBlanks ? ' ' : table.delimiter;
  const std::string paste =
      delimiter == '\t' ? "paste" : fmt::format("paste -d {}", shell_word(std::string(1, delimiter)));
  std::string command = fmt::format("{} {} {}", paste, features, labels);
  if (extra_labels > 0) command = fmt::format("tail -n +2 {} | {} {} -", labels, paste, features);
  if (extra_labels < 0) command = fmt::format("(echo label; cat {}) | {} {} -", labels, paste, features);
  if (have_returns) command += " | tr -d '\\r'";
  return fmt::format("{} > {}", command, shell_word(output.string()));
}

/// A file that does not exist: train.txt for X_train.txt, in the folder that has those of all sets.
fs::path output_of(const fs::path& features, std::string_view begin) {
  fs::path folder = features.parent_path();
  if (const auto set = set_of(folder.filename().string()); set && set->rest.empty())
    folder = folder.parent_path();
  const auto part = part_of(features.stem().string());
  const std::string rest = part && !part->rest.empty() ? part->rest : "joined";
  return folder / fmt::format("{}{}{}", begin, rest, features.extension().string());
}

}  // namespace

std::string features_file(const std::string& folder, const std::vector<std::string>& files) {
  std::string found, labels;
  for (const std::string& file : files) {
    const auto set = set_of(fs::path(file).stem().string());
    const std::string other = labels_of(file, files);
    if (other.empty() || (set && set->set != SetKind::train)) continue;
    if (!found.empty()) return "";
    found = file;
    labels = other;
  }
  if (found.empty()) return "";
  const std::int64_t rows = lines_of((fs::path(folder) / found).string()).count;
  const std::int64_t extra = lines_of((fs::path(folder) / labels).string()).count - rows;
  return extra >= -1 && extra <= 1 ? found : "";
}

void check_separate_labels(const DataQuestion& question, const TableContents& table) {
  const fs::path features(question.place);
  const bool has_named_label = std::ranges::any_of(
      table.columns, [](const ColumnContents& column) { return label_rank(column.name, false).has_value(); });
  if (!question.labels.empty() || has_named_label || table.skip_lines > 0) return;
  const std::string labels =
      labels_of(features.filename().string(), contents_of(features.parent_path().string()).files);
  if (labels.empty()) return;
  const Pair pair{features, features.parent_path() / labels};
  const Lines own = lines_of(features.string()), others = lines_of(pair.labels.string());
  const std::int64_t extra = others.count - own.count;
  if (extra != 0 && extra != (table.header ? -1 : 1)) return;
  const bool have_returns = own.have_returns || others.have_returns;
  auto evaluation = pair_of_set(features, SetKind::validation);
  if (!evaluation) evaluation = pair_of_set(features, SetKind::test);
  const auto outputs = [&](std::string_view begin) {
    std::vector<fs::path> paths{output_of(features, begin)};
    if (evaluation) paths.push_back(output_of(evaluation->features, begin));
    return paths;
  };
  std::error_code unknown;
  std::vector<fs::path> to = outputs("");
  if (std::ranges::any_of(to, [&](const fs::path& path) { return fs::exists(path, unknown); }))
    to = outputs("new_");
  std::string commands = join_command(pair, table, extra, to[0], have_returns);
  if (evaluation) commands += " && " + join_command(*evaluation, table, extra, to[1], have_returns);
  throw error_of_lines(
      ErrorKind::data, shown_format("has no labels: {} next to it has one for each of its rows", labels),
      question.place,
      shown_format("Join them. Run: {}\n  Then: lockstep new {}\n  If one of its columns is the label, name "
                   "that one with --labels.",
                   commands, shell_word(to[0].string())));
}

}  // namespace lockstep

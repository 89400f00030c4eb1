// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_class_counts.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "core/scalar.h"
#include "io/atomic_file.h"
#include "model/class_balance.h"

namespace lockstep {

namespace {

std::string name_of_file(const std::string& head) {
  return "class_counts" + (head.empty() ? "" : "-" + head) + ".txt";
}

std::vector<std::int64_t> counts_from_text(const std::string& text, const std::string& path) {
  std::vector<std::int64_t> counts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::optional<std::int64_t> count = parse_integer(line);
    if (!count || *count < 0)
      throw Error(ErrorKind::data, fmt::format("line {} is no number of labels", counts.size() + 1), path,
                  "Restore the file: each line has the labels of a class in the training set.");
    counts.push_back(*count);
  }
  return counts;
}

}  // namespace

std::string class_counts_path(const std::string& run_dir, const std::string& head) {
  return run_dir + "/" + name_of_file(head);
}

void add_class_counts(const Heads& heads, KeptFiles& kept) {
  for (const Head& head : heads) {
    const auto* const balance = dynamic_cast<const ClassBalance*>(head.loss.get());
    if (balance == nullptr || balance->class_counts().empty()) continue;
    std::string text;
    for (const std::int64_t count : balance->class_counts()) text += fmt::format("{}\n", count);
    kept.emplace(name_of_file(head.name), std::move(text));
  }
}

std::optional<std::vector<std::int64_t>> kept_class_counts(const std::string& run_dir,
                                                           const std::string& head, const KeptFiles* kept) {
  const std::string path = class_counts_path(run_dir, head);
  if (kept != nullptr)
    if (const auto found = kept->find(name_of_file(head)); found != kept->end())
      return counts_from_text(found->second, path);
  std::error_code code;
  if (std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::not_found)
    return std::nullopt;
  return counts_from_text(read_whole_file(path, ErrorKind::data), path);
}

}  // namespace lockstep

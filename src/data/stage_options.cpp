// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/stage_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/option.h"
#include "data/data_options.h"
#include "data/reader_table.h"

namespace lockstep {

namespace {

std::string text_or_empty(const Params& params, const ParamSpec& option) {
  return params.has(option.name) ? params.string(option.name) : std::string();
}
constexpr ParamSpec kKeys[] = {
    option_as<text_or_empty, &StageOptions::to>(
        ParamType::string, "stage_to", "null",
        in_words("absolute path; $NAME is a variable of the environment"),
        "a folder on a disk of each node, to which training copies the files before it opens them; null: "
        "they are read where they are",
        Change::free),
    option<&StageOptions::keep>(
        "stage_keep", "false", {},
        "the copies stay after the job, for the next job of the same run on that node", Change::free),
    option<&StageOptions::verify>("stage_verify", "true", {},
                                  "copies are read again, and their checksums compared", Change::free),
    option<&StageOptions::threads>("stage_threads", "4", between(1, 64), "threads of each rank that copy",
                                   Change::free),
};

}  // namespace

std::span<const ParamSpec> stage_table() { return kKeys; }

bool is_stage_key(std::string_view key) {
  return std::ranges::find(kKeys, key, &ParamSpec::name) != std::end(kKeys);
}

StageOptions stage_options(const Node& section) {
  Node own;
  own.kind = Node::Kind::map;
  own.where = section.where;
  for (std::size_t i = 0; i < section.entries.size(); ++i) {
    if (!is_stage_key(section.entries[i].first)) continue;
    own.entries.push_back(section.entries[i]);
    own.entry_where.push_back(i < section.entry_where.size() ? section.entry_where[i] : section.where);
  }
  const Params params(own, stage_table(), "section data");
  auto options = params.as<StageOptions>();
  options.where = params.where(option_name<&StageOptions::to>(params));
  return options;
}

namespace {
/// Calls use(reader, options of a set) for both sets of each input and target.
template <typename Use>
void for_each_set(const DataOptions& options, Use use) {
  for (const DataInput* const input : sets_of(options)) {
    const ReaderEntry& reader = find_reader(input->format);
    use(reader, input->train);
    if (input->eval) use(reader, *input->eval);
  }
  for (const DataSource& source : options.sources) use(find_reader(source.format), source.params);
}
}  // namespace

std::vector<std::string> files_of_sets(const DataOptions& options, const std::string& base_directory) {
  std::vector<std::string> files;
  for_each_set(options, [&](const ReaderEntry& reader, const Params& set) {
    if (reader.files == nullptr)
      throw Error(ErrorKind::config,
                  fmt::format("data.stage_to: the reader {} does not say which files it opens", reader.name),
                  options.stage.where, "Leave out data.stage_to.");
    const std::vector<std::string> more = reader.files(set, base_directory);
    files.insert(files.end(), more.begin(), more.end());
  });
  std::ranges::sort(files);
  files.erase(std::unique(files.begin(), files.end()), files.end());
  return files;
}

void check_stage_files(const DataOptions& options, const std::string& base_directory, int part, int parts) {
  for_each_set(options, [&](const ReaderEntry& reader, const Params& set) {
    if (reader.check_alone == nullptr) return;
    const std::vector<std::string> files = reader.files(set, base_directory);
    for (auto i = static_cast<std::size_t>(part); i < files.size(); i += static_cast<std::size_t>(parts))
      reader.check_alone(set, files[i]);
  });
}

}  // namespace lockstep

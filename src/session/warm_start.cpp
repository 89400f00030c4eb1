// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/warm_start.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "comm/agree.h"
#include "config/option.h"
#include "core/log.h"
#include "core/message_lines.h"
#include "core/name_list.h"
#include "core/shown_text.h"
#include "io/checkpoint_tools.h"
#include "model/variable_store.h"
#include "session/checkpoint_choice.h"
#include "session/rename_map.h"
#include "session/run_state.h"

namespace lockstep {

namespace {

constexpr std::string_view kGroup = "variables/";

/// The section as it is written.
struct Section {
  std::optional<std::string> checkpoint;
  std::vector<std::string> variables;
  Node rename;
  std::string which;
  bool averages = true, strict = true;
};

constexpr ParamSpec kTable[] = {
    option<&Section::checkpoint>("checkpoint", "null", in_words("file or run directory, or null"),
                                 "Source of the initial values. null: every variable keeps its own initial "
                                 "values. A run that continues from its own checkpoint ignores this section.",
                                 Change::free),
    option<&Section::which>("which", "last", one_of("last|best"),
                            "Which checkpoint of a run directory: last, the newest intact one, or best, by "
                            "its checkpoint.best_metric.",
                            Change::free),
    option<&Section::variables>(
        "variables", "[*]", {},
        "Patterns for whole names of variables of this model: conv1/* for all of conv1; * stands for any "
        "text, ? for one character. After re: stands a regular expression: re:conv[12]/.*. Other variables "
        "keep their own initial values.",
        Change::free),
    option<&Section::rename>(
        "rename", "null", in_words("map or null"),
        "Names in the checkpoint of this model's variables: {conv1/kernel: first/kernel} for one, {head/: "
        "top/} for all below head, {/: backbone/} for all, or a pattern, whose *, ? or groups are $1, $2, "
        "... on the right: {'block*/kernel': 'stage$1/kernel'}, {'re:block([0-9]+)/(.*)': 'stage$1/$2'}.",
        Change::free),
    option<&Section::averages>(
        "averages", "true", {},
        "A variable takes its moving average, where the checkpoint has one (see average).", Change::free),
    option<&Section::strict>("strict", "true", {},
                             "It is an error if a variable is missing in the checkpoint or has another shape "
                             "there. false: take what matches and log a warning.",
                             Change::free),
};

std::vector<NameRules::Rule> rules_of(const Params& section, const Node& node) {
  const std::string_view option = option_name<&Section::rename>(section);
  if (is_null(node)) return {};
  if (node.kind != Node::Kind::map)
    throw section.error(option, "is not a map", "Write {conv1/: backbone/conv1/}.");
  RenameMap map = rename_map(node);
  if (!map.left_out.empty())
    throw section.error(option, fmt::format("'{}' has no name on its right", map.left_out.front()),
                        "To start without some variables, choose the others with warm_start.variables.");
  return std::move(map.rules);
}

/// An option whose texts are checked where they are used.
template <typename Make>
auto checked(const Params& section, std::string_view name, Make make) {
  try {
    return make();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::usage) throw;
    throw section.error(name, error.what_happened(), error.advice());
  }
}

std::string lines(const char* what, const std::vector<WarmStartReport::Item>& items) {
  std::string text;
  for (const auto& item : items)
    text += shown_format("\n  {} {}{}{}", what, item.name,
                         item.from == item.name ? "" : fmt::format(" (from {})", item.from), item.detail);
  return text;
}

void refuse_useless_patterns(const VariableStore& variables, const WarmStartOptions& options) {
  std::vector<std::string> names;
  for (const Variable& variable : variables.variables()) names.push_back(variable.name);
  const auto refuse = [&](const char* option, const std::vector<std::string>& unused) {
    if (unused.empty()) return;
    throw Error(ErrorKind::config,
                fmt::format("warm_start.{}: no variable of this model matches '{}'", option, unused.front()),
                options.where,
                fmt::format("{}Its variables: {}.", advice_for_pattern(unused.front()), name_list(names)));
  };
  refuse("variables", options.variables.unused(names));
  refuse("rename", options.rename.unused(names));
}

}  // namespace

std::span<const ParamSpec> warm_start_table() { return kTable; }

std::optional<WarmStartOptions> warm_start_options(const Params& section, const std::string& base_directory) {
  const auto written = section.as<Section>();
  const std::string_view variables = option_name<&Section::variables>(section),
                         rename = option_name<&Section::rename>(section);
  WarmStartOptions options;
  options.variables = checked(section, variables, [&] { return NamePatterns(written.variables); });
  options.rename = checked(section, rename, [&] { return NameRules(rules_of(section, written.rename)); });
  options.which = written.which;
  options.averages = written.averages;
  options.strict = written.strict;
  if (!written.checkpoint) return std::nullopt;
  options.checkpoint =
      (std::filesystem::path(base_directory) / *written.checkpoint).lexically_normal().string();
  options.where = section.where(variables);
  return options;
}

std::string WarmStartReport::text() const {
  std::string text = fmt::format("{} variable{} taken", taken.size(), taken.size() == 1 ? "" : "s");
  const auto count = [&](std::size_t number, const char* what) {
    if (number > 0) text += fmt::format(", {} {}", number, what);
  };
  count(missing.size(), "missing there");
  count(other_shape.size(), "with another shape");
  count(unmatched.size(), "not matched");
  count(unused.size(), "of the checkpoint not used");
  std::vector<Item> renamed;
  std::copy_if(taken.begin(), taken.end(), std::back_inserter(renamed),
               [](const Item& item) { return item.from != item.name; });
  text += lines("taken:", renamed) + lines("missing:", missing) + lines("another shape:", other_shape);
  for (const std::string& name : unmatched) text += "\n  not matched: " + shown_text(name);
  for (const std::string& name : unused) text += "\n  not used: " + shown_text(name);
  return text;
}

WarmStartReport plan_warm_start(const CheckpointFile& file, const VariableStore& variables,
                                const WarmStartOptions& options) {
  WarmStartReport report;
  std::set<std::string> used;
  const std::vector<CheckpointEntry>& entries = file.entries();
  for (const CheckpointTensor& wanted : state_tensors(variables, nullptr)) {
    const std::string name = wanted.path.substr(kGroup.size());
    if (!options.variables.matches(name)) {
      report.unmatched.push_back(name);
      continue;
    }
    const std::string from = options.rename.renamed(name);
    const auto entry = std::find_if(entries.begin(), entries.end(), [&](const CheckpointEntry& candidate) {
      return candidate.path.starts_with(kGroup) && candidate.path.substr(kGroup.size()) == from;
    });
    if (entry == entries.end()) {
      report.missing.push_back({name, from, ""});
    } else if (!(entry->shape == wanted.tensor.shape()) || entry->dtype != wanted.tensor.dtype()) {
      report.other_shape.push_back(
          {name, from,
           fmt::format(": {} of {} there, {} of {} here", name_of(entry->dtype), entry->shape.to_string(),
                       name_of(wanted.tensor.dtype()), wanted.tensor.shape().to_string())});
    } else {
      report.taken.push_back({name, from, ""});
    }
    used.insert(from);
  }
  for (const CheckpointEntry& entry : entries)
    if (entry.path.starts_with(kGroup) && !used.contains(entry.path.substr(kGroup.size())))
      report.unused.push_back(entry.path.substr(kGroup.size()));
  return report;
}

WarmStartSource open_warm_start(const WarmStartOptions& options, const VariableStore& variables) {
  refuse_useless_patterns(variables, options);
  std::error_code code;
  const bool is_run = std::filesystem::is_directory(options.checkpoint, code);
  WarmStartSource source{
      std::make_unique<CheckpointFile>(is_run ? open_chosen_checkpoint(options.checkpoint, options.which)
                                              : CheckpointFile(options.checkpoint)),
      {}};
  if (!is_run) source.file->verify();  // that of a run directory is verified already
  source.report = plan_warm_start(*source.file, variables, options);
  const WarmStartReport& report = source.report;
  if (report.taken.empty() || (options.strict && !report.complete()))
    throw error_of_lines(
        ErrorKind::checkpoint, "the model cannot be warm-started from it: " + report.text(),
        source.file->path(),
        "warm_start.variables chooses variables, warm_start.rename says what they are called there, "
        "and strict: false takes what fits.");
  return source;
}

namespace {

/// The path in the checkpoint.
std::string source_of(const WarmStartReport::Item& item, const CheckpointFile& file,
                      const WarmStartOptions& options) {
  std::string average = average_path(item.from);
  return options.averages && file.has(average) ? average : std::string(kGroup) + item.from;
}

}  // namespace

void warm_start(Communicator& world, const WarmStartOptions& options, VariableStore& variables) {
  const std::vector<CheckpointTensor> tensors = state_tensors(variables, nullptr);
  std::vector<std::uint8_t> taken(variables.variables().size(), 0);  // by variable
  agree(
      world,
      [&] {
        if (world.rank() != 0) return;
        const WarmStartSource source = open_warm_start(options, variables);
        const CheckpointFile& file = *source.file;
        const WarmStartReport& report = source.report;
        for (const WarmStartReport::Item& item : report.taken) {
          const std::string path = std::string(kGroup) + item.name;
          const auto here = std::find_if(tensors.begin(), tensors.end(),
                                         [&](const CheckpointTensor& tensor) { return tensor.path == path; });
          file.read_into(source_of(item, file, options), here->tensor);
          taken[static_cast<std::size_t>(variables.find(item.name))] = 1;
        }
        const auto averaged = std::ranges::count_if(report.taken, [&](const WarmStartReport::Item& item) {
          return !source_of(item, file, options).starts_with(kGroup);
        });
        if (averaged > 0) log_info("{} variables take their moving averages", averaged);
        if (report.complete())
          log_info("warm start from {}: {}", file.path(), MessageLines{report.text()});
        else
          log_warning("warm start from {}: {}", file.path(), MessageLines{report.text()});
      },
      "the warm start");
  for (const CheckpointTensor& tensor : tensors)
    world.broadcast(tensor.tensor.raw(), tensor.tensor.size_bytes(), 0, "warm-started variables");
  world.broadcast(taken.data(), taken.size(), 0, "which variables were warm-started");
  variables.to_device();
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (taken[i] != 0) variables.mark_set(static_cast<VariableId>(i));
}

}  // namespace lockstep

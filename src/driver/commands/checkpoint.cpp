// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/checkpoint.h"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>

#include "core/plain_nan.h"
#include "core/shown_text.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/checkpoint_tools.h"
#include "io/json.h"
#include "io/output_file.h"
#include "io/print_result.h"
#include "session/checkpoint_choice.h"
#include "session/number_text.h"
#include "view/run/checkpoint_rows.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWeightsEndings[] = {".h5", ".hdf5"};

std::string dumped(const Json& json) {
  return json.dump(2) + "\n";  // NaN and infinities as null
}

std::string as_table(const std::vector<CheckpointRow>& rows, bool verify) {
  std::string text = shown_format("{:>10}  {:>6}  {:<20}  {:>10}  {:>12}  {}\n", "step", "epoch", "written",
                                  "MB", "metric", "kept");
  for (const CheckpointRow& row : rows) {
    text += shown_format("{:>10}  {:>6}  {:<20}  {:>10.1f}  {:>12}  {}", row.kept.step,
                         row.epoch ? std::to_string(*row.epoch + (row.inside ? 1 : 0)) : "?",
                         utc_text(row.kept.time), 1e-6 * static_cast<double>(row.bytes),
                         row.kept.metric ? number_text(*row.kept.metric) : "", why_kept(row.kept));
    if (!row.damage.empty())
      text += shown_format("; {}: {}", fault_word(row.kept.path), row.damage);
    else if (verify)
      text += "; intact";
    text += "\n";
  }
  return text;
}

Json as_json(const CheckpointRow& row, bool verify) {
  Json json = {{"step", row.kept.step},
               {"file", row.kept.path},
               {"written", utc_text(row.kept.time)},
               {"bytes", row.bytes},
               {"kept", why_kept(row.kept)}};
  json["epoch"] = row.epoch ? Json(*row.epoch) : Json();
  json["metric"] = row.kept.metric ? Json(*row.kept.metric) : Json();
  if (verify) json["intact"] = row.damage.empty();
  if (!row.damage.empty()) json["damage"] = row.damage;
  return json;
}

/// One of several targets: a file is what it is, and `word` chooses in a run directory.
CheckpointFile open_one(const std::string& target, std::string_view word) {
  std::error_code code;
  return fs::is_directory(target, code) ? open_chosen_checkpoint(target, word) : CheckpointFile(target);
}

const char* name_of(TensorDifference::Kind kind) {
  switch (kind) {
    case TensorDifference::Kind::equal:
      return "equal";
    case TensorDifference::Kind::values:
      return "values";
    case TensorDifference::Kind::shape:
      return "shape";
    case TensorDifference::Kind::only_first:
      return "only in the first";
    case TensorDifference::Kind::only_second:
      return "only in the second";
  }
  LOCKSTEP_CHECK(false, "kind {}", static_cast<int>(kind));
}

std::string as_text(const TensorDifference& difference) {
  std::string text = shown_format("{}: ", difference.path);
  switch (difference.kind) {
    case TensorDifference::Kind::equal:
      return {};
    case TensorDifference::Kind::values:
      return text + shown_format("{} value{} differ, at most by {:.6g} (relative {:.3g})\n",
                                 difference.num_different, difference.num_different == 1 ? "" : "s",
                                 plain_nan(difference.max_absolute), plain_nan(difference.max_relative));
    case TensorDifference::Kind::shape:
      return text + shown_text(difference.detail) + "\n";
    default:
      return text + name_of(difference.kind) + "\n";
  }
}

}  // namespace

int list_checkpoints(const std::string& run_dir, bool verify, bool json, std::FILE* out) {
  std::vector<CheckpointRow> rows;
  for (const KeptCheckpoint& kept : checkpoints_of(run_dir)) {
    CheckpointRow row = checkpoint_row(kept, verify);
    std::error_code code;
    if (row.damage.empty() || fs::exists(kept.path, code)) rows.push_back(std::move(row));  // else it is gone
  }
  if (json) {
    Json all = Json::array();
    for (const CheckpointRow& row : rows) all.push_back(as_json(row, verify));
    print_as_is(out, dumped(all));
  } else {
    print_lines(out, as_table(rows, verify));
  }
  return 0;
}

int verify_checkpoints(const std::string& path, std::FILE* out) {
  std::vector<std::string> files;
  std::error_code code;
  if (fs::is_directory(path, code))
    for (const KeptCheckpoint& kept : checkpoints_of(path)) files.push_back(kept.path);
  else
    files.push_back(path);
  int damaged = 0;
  for (const std::string& file : files) {
    const std::string damage = checkpoint_damage(file);
    if (!damage.empty() && file != path && !fs::exists(file, code)) continue;  // training has removed it
    print_lines(out, damage.empty() ? shown_format("{}: intact\n", file)
                                    : shown_format("{}, {}\n", damage, fault_word(file)));
    if (!damage.empty()) ++damaged;
  }
  return damaged == 0 ? 0 : exit_code(ErrorKind::checkpoint);
}

int diff_checkpoints(const std::string& first, const std::string& second, bool json, std::FILE* out,
                     std::string_view checkpoint) {
  const CheckpointFile a = open_one(first, checkpoint), b = open_one(second, checkpoint);
  const std::vector<TensorDifference> all = compare_checkpoints(a, b);
  const auto equal = std::count_if(all.begin(), all.end(),
                                   [](const auto& d) { return d.kind == TensorDifference::Kind::equal; });
  if (json) {
    Json tensors = Json::array();
    for (const TensorDifference& difference : all) {
      Json entry = {{"path", difference.path}, {"difference", name_of(difference.kind)}};
      if (difference.kind == TensorDifference::Kind::values) {
        entry["values"] = difference.num_different;
        entry["max_absolute"] = difference.max_absolute;
        entry["max_relative"] = difference.max_relative;
      }
      if (!difference.detail.empty()) entry["detail"] = difference.detail;
      tensors.push_back(std::move(entry));
    }
    print_as_is(out, dumped({{"first", a.path()},
                             {"first_step", a.header().global_step},
                             {"second", b.path()},
                             {"second_step", b.header().global_step},
                             {"equal", static_cast<std::size_t>(equal) == all.size()},
                             {"tensors", tensors}}));
  } else {
    std::string text;
    for (const TensorDifference& difference : all) text += as_text(difference);
    print_lines(out, text + shown_format("{} of {} tensors are equal; steps {} and {}\n", equal, all.size(),
                                         a.header().global_step, b.header().global_step));
  }
  return static_cast<std::size_t>(equal) == all.size() ? 0 : 1;
}

namespace {

struct ListArguments {
  std::string run_dir;
  bool verify = false, json = false;
};

void declare_list(CommandOptions& options, ListArguments& arguments) {
  add_target(options, "RUN_DIR", arguments.run_dir, "Run directory");
  options.add_flag("--verify", arguments.verify, "Read every byte, and say which are intact");
  add_json(options, arguments.json);
}

int run_list(const ListArguments& arguments) {
  return list_checkpoints(arguments.run_dir, arguments.verify, arguments.json, stdout);
}

struct VerifyArguments {
  std::string target;  ///< a checkpoint, or a run directory for all of its checkpoints
};

void declare_verify(CommandOptions& options, VerifyArguments& arguments) {
  add_target(options, "RUN_DIR|FILE", arguments.target,
             "Run directory, for all its checkpoints, or a checkpoint file");
}

int run_verify(const VerifyArguments& arguments) { return verify_checkpoints(arguments.target, stdout); }

struct DiffArguments {
  std::string first, second;
  std::string checkpoint;  ///< of run directories: "last" or "best"
  bool json = false;
};

void declare_diff(CommandOptions& options, DiffArguments& arguments) {
  constexpr const char* kHelp = "Checkpoint file, or run directory for its newest checkpoint";
  add_target(options, "A", arguments.first, kHelp);
  add_target(options, "B", arguments.second, kHelp);
  add_checkpoint_choice(options, arguments.checkpoint);
  add_json(options, arguments.json);
}

int run_diff(const DiffArguments& arguments) {
  return diff_checkpoints(arguments.first, arguments.second, arguments.json, stdout, arguments.checkpoint);
}

struct AverageArguments {
  std::vector<std::string> files;
  std::string output;
  std::string checkpoint;  ///< of run directories: "last" or "best"
};

void declare_average(CommandOptions& options, AverageArguments& arguments) {
  options.add("FILE", arguments.files, "Checkpoint files, or run directories for their newest checkpoints")
      .required()
      .from_to_values(2, 1 << 20)
      .type_name("");
  add_checkpoint_choice(options, arguments.checkpoint);
  add_output(options, arguments.output);
}

int run_average(const AverageArguments& arguments) {
  output_ending(arguments.output, kWeightsEndings);
  std::vector<CheckpointFile> files;
  for (const std::string& target : arguments.files) files.push_back(open_one(target, arguments.checkpoint));
  average_weights(files, arguments.output);
  return 0;
}

struct ExportArguments {
  std::string target, output;
  std::string checkpoint;              ///< of a run directory: "last" or "best"
  std::vector<std::string> variables;  ///< patterns; empty: all
  std::vector<std::pair<std::string, std::string>> rename;
  bool averages = true;  ///< a variable has the values of its moving average, if there is one
};

/// Of --rename.
std::vector<std::pair<std::string, std::string>> renames_of(const std::vector<std::string>& rules) {
  std::vector<std::pair<std::string, std::string>> renames;
  for (const std::string& rule : rules) {
    const std::size_t equals = rule.find('=');
    if (equals == std::string::npos)
      throw usage_error(shown_format("--rename {} is not FROM=TO", rule),
                        "See: lockstep checkpoint export --help");
    renames.emplace_back(rule.substr(0, equals), rule.substr(equals + 1));
  }
  return renames;
}

void declare_export(CommandOptions& options, ExportArguments& arguments) {
  add_target(options, "RUN_DIR|FILE", arguments.target,
             "Run directory, for its newest checkpoint, or a checkpoint file");
  add_checkpoint_choice(options, arguments.checkpoint);
  add_output(options, arguments.output);
  add_averages(options, arguments.averages);
  options
      .add("--variables", arguments.variables,
           "Only variables whose whole name this pattern matches (* is any text; re: begins a regular "
           "expression); may be repeated")
      .type_name("PATTERN")
      .one_value_each();
  auto& rules = options.keep<std::vector<std::string>>();
  options
      .add("--rename", rules,
           "Give a variable another name: a name, a scope that ends with '/', or a pattern, whose * "
           "and groups are $1, $2, ...; may be repeated")
      .type_name("FROM=TO")
      .one_value_each();
  options.after_parsing([&arguments, &rules] { arguments.rename = renames_of(rules); });
}

int run_export(const ExportArguments& arguments) {
  output_ending(arguments.output, kWeightsEndings);
  export_weights(open_chosen_checkpoint(arguments.target, arguments.checkpoint),
                 NamePatterns(arguments.variables), NameRules(arguments.rename), arguments.output,
                 arguments.averages);
  return 0;
}

}  // namespace

extern const Command kCheckpointCommand = {"checkpoint",
                                           "List, verify, compare, average and export checkpoints", ""};

extern const Command kCheckpointListCommand = {
    "checkpoint list", "Print the checkpoints of a run, and why each is kept",
    "lockstep checkpoint list runs/digits --verify", call_with<ListArguments, declare_list, run_list>};

extern const Command kCheckpointVerifyCommand = {
    "checkpoint verify", "Read every byte and name what is damaged; exit code 4 if anything is",
    "lockstep checkpoint verify runs/digits", call_with<VerifyArguments, declare_verify, run_verify>};

extern const Command kCheckpointDiffCommand = {
    "checkpoint diff", "Compare two checkpoints tensor by tensor; exit code 1 if they differ",
    "lockstep checkpoint diff runs/one runs/two", call_with<DiffArguments, declare_diff, run_diff>};

extern const Command kCheckpointAverageCommand = {
    "checkpoint average", "Write the mean of the variables of several checkpoints of one model",
    "lockstep checkpoint average runs/digits/checkpoints/step-00000240.h5 "
    "runs/digits/checkpoints/step-00000480.h5 --output mean.h5",
    call_with<AverageArguments, declare_average, run_average>};

extern const Command kCheckpointExportCommand = {
    "checkpoint export", "Write the variables alone, without optimizer and run",
    "lockstep checkpoint export runs/digits --output weights.h5 --variables 'conv*'",
    call_with<ExportArguments, declare_export, run_export>};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/checkpoint.h"

#include <algorithm>
#include <filesystem>

#include "driver/commands/commands.h"
#include "io/checkpoint_tools.h"
#include "io/json.h"
#include "io/output_file.h"
#include "io/print_result.h"
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
  std::string text = fmt::format("{:>10}  {:>6}  {:<20}  {:>10}  {:>12}  {}\n", "step", "epoch", "written",
                                 "MB", "metric", "kept");
  for (const CheckpointRow& row : rows) {
    text += fmt::format("{:>10}  {:>6}  {:<20}  {:>10.1f}  {:>12}  {}", row.kept.step,
                        row.epoch ? std::to_string(*row.epoch + (row.inside ? 1 : 0)) : "?",
                        utc_text(row.kept.time), 1e-6 * static_cast<double>(row.bytes),
                        row.kept.metric ? number_text(*row.kept.metric) : "", why_kept(row.kept));
    if (!row.damage.empty())
      text += fmt::format("; {}: {}", fault_word(row.kept.path), row.damage);
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
  std::string text = fmt::format("{}: ", difference.path);
  switch (difference.kind) {
    case TensorDifference::Kind::equal:
      return {};
    case TensorDifference::Kind::values:
      return text + fmt::format("{} value{} differ, at most by {:.6g} (relative {:.3g})\n",
                                difference.num_different, difference.num_different == 1 ? "" : "s",
                                difference.max_absolute, difference.max_relative);
    case TensorDifference::Kind::shape:
      return text + difference.detail + "\n";
    default:
      return text + name_of(difference.kind) + "\n";
  }
}

}  // namespace

int list_checkpoints(const std::string& run_dir, bool verify, bool json, std::FILE* out) {
  std::vector<CheckpointRow> rows;
  for (const KeptCheckpoint& kept : checkpoints_of(run_dir)) rows.push_back(checkpoint_row(kept, verify));
  if (json) {
    Json all = Json::array();
    for (const CheckpointRow& row : rows) all.push_back(as_json(row, verify));
    print_result(out, dumped(all));
  } else {
    print_result(out, as_table(rows, verify));
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
    print_result(out, damage.empty() ? fmt::format("{}: intact\n", file)
                                     : fmt::format("{}, {}\n", damage, fault_word(file)));
    if (!damage.empty()) ++damaged;
  }
  return damaged == 0 ? 0 : exit_code(ErrorKind::checkpoint);
}

int diff_checkpoints(const std::string& first, const std::string& second, bool json, std::FILE* out) {
  const CheckpointFile a(checkpoint_at(first)), b(checkpoint_at(second));
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
    print_result(out, dumped({{"first", a.path()},
                              {"first_step", a.header().global_step},
                              {"second", b.path()},
                              {"second_step", b.header().global_step},
                              {"equal", static_cast<std::size_t>(equal) == all.size()},
                              {"tensors", tensors}}));
  } else {
    std::string text;
    for (const TensorDifference& difference : all) text += as_text(difference);
    print_result(out, text + fmt::format("{} of {} tensors are equal; steps {} and {}\n", equal, all.size(),
                                         a.header().global_step, b.header().global_step));
  }
  return static_cast<std::size_t>(equal) == all.size() ? 0 : 1;
}

int run_command(const CheckpointListArguments& arguments) {
  return list_checkpoints(arguments.run_dir, arguments.verify, arguments.json, stdout);
}

int run_command(const CheckpointVerifyArguments& arguments) {
  return verify_checkpoints(arguments.target, stdout);
}

int run_command(const CheckpointDiffArguments& arguments) {
  return diff_checkpoints(arguments.first, arguments.second, arguments.json, stdout);
}

int run_command(const CheckpointAverageArguments& arguments) {
  output_ending(arguments.output, kWeightsEndings);
  std::vector<std::string> files;
  for (const std::string& target : arguments.files) files.push_back(checkpoint_at(target));
  average_weights(files, arguments.output);
  return 0;
}

int run_command(const CheckpointExportArguments& arguments) {
  output_ending(arguments.output, kWeightsEndings);
  export_weights(CheckpointFile(checkpoint_at(arguments.target)), NamePatterns(arguments.variables),
                 NameRules(arguments.rename), arguments.output, arguments.averages);
  return 0;
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/plain_nan.h"
#include "core/shown_text.h"
#include "data/table_info.h"
#include "data/text_info.h"
#include "driver/command_line/command.h"
#include "driver/command_line/common_options.h"
#include "io/checkpoint.h"
#include "io/json.h"
#include "io/print_result.h"
#include "io/tensor_values.h"
#include "session/checkpoint_choice.h"
#include "session/kept_data.h"

namespace lockstep {

namespace {

struct Statistics {
  double min = std::numeric_limits<double>::quiet_NaN();
  double max = min, mean = min, standard_deviation = min;
  std::int64_t num_nan = 0;
};

struct Row {
  CheckpointEntry entry;
  Statistics statistics;
};

Statistics statistics_of(std::vector<double> values) {
  Statistics result;
  const std::size_t all = values.size();
  std::erase_if(values, [](double value) { return std::isnan(value); });
  result.num_nan = static_cast<std::int64_t>(all - values.size());
  if (values.empty()) return result;
  const auto count = static_cast<double>(values.size());
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  result.min = *min;
  result.max = *max;
  double sum = 0;
  for (double value : values) sum += value;
  result.mean = sum / count;
  double squares = 0;
  for (double value : values) squares += (value - result.mean) * (value - result.mean);
  result.standard_deviation = std::sqrt(squares / count);
  return result;
}

std::vector<Row> read_rows(const CheckpointFile& file) {
  std::vector<Row> rows;
  std::vector<std::uint64_t> block;  // of integers: aligned for every dtype
  for (const CheckpointEntry& entry : file.entries()) {
    const Tensor shape_only(nullptr, entry.dtype, entry.shape);
    block.resize(shape_only.size_bytes() / sizeof(std::uint64_t) + 1);
    file.read_into(entry.path, Tensor(block.data(), entry.dtype, entry.shape));
    rows.push_back({entry, statistics_of(values_of(Tensor(block.data(), entry.dtype, entry.shape)))});
  }
  return rows;
}

std::string labels_text(const SampleDescription::Part& part) {
  if (part.labels == LabelKind::none) return "no labels";
  return shown_format("{} {}", part.label_columns,
                      part.labels == LabelKind::indices
                          ? (part.label_columns == 1 ? "class index" : "class indices")
                          : (part.label_columns == 1 ? "label" : "labels"));
}

/// What the checkpoint carries of its data: with it the model is used without them.
std::string kept_text(const CheckpointFile& file) {
  const auto description = kept_description(file.header().kept.get(), file.path());
  if (!description)
    return "  data              not described: an earlier version of Lockstep has written the file. "
           "Predictions\n"
           "                    need the training data\n\n";
  std::string text;
  for (const SampleDescription::Part& part : description->parts) {
    std::string line = shown_format("{}{} of {}, {}", part.name.empty() ? "" : part.name + ": ",
                                    part.shape.to_string(), name_of(part.type), labels_text(part));
    if (!part.class_names.empty()) line += shown_format(", {} classes", part.class_names.size());
    if (part.table != nullptr) line += shown_format(", {} columns", part.table->features.size());
    if (part.text != nullptr) line += shown_format(", {} words", part.text->vocabulary.size());
    text += shown_format("  {:<16}  {}\n", text.empty() ? "samples" : "", line);
  }
  const char* label = "kept of the data";
  for (const auto& [name, contents] : *file.header().kept) {
    if (name == kSampleDescription) continue;
    text += shown_format("  {:<16}  {} ({} bytes)\n", label, name, contents.size());
    label = "";
  }
  return text + "\n";
}

std::string as_table(const CheckpointFile& file, const std::vector<Row>& rows) {
  const CheckpointHeader& header = file.header();
  std::string text = shown_format(
      "{}\n  global step       {}\n  epoch             {}, {} samples of it consumed\n  shards            "
      "{}\n"
      "  seed              {}\n  written           {} by Lockstep {}\n  digest            {}\n\n",
      file.path(), header.global_step, header.epoch, header.samples_consumed,
      header.shards == 0 ? "any" : std::to_string(header.shards), header.seed, header.created,
      header.lockstep_version, header.digest);
  if (!header.computed_on.empty()) {
    text.pop_back();
    std::string_view rest = header.computed_on;
    for (const char* label = "computed on"; !rest.empty(); label = "") {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      text += shown_format("  {:<16}  {}\n", label, rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    text += "\n";
  }
  text += kept_text(file);
  std::size_t path_width = 6, shape_width = 5;
  for (const Row& row : rows) {
    path_width = std::max(path_width, shown_text(row.entry.path).size());
    shape_width = std::max(shape_width, row.entry.shape.to_string().size());
  }
  text += shown_format("{:<{}}  {:<5}  {:<{}}  {:>11}  {:>11}  {:>11}  {:>11}  {:>6}\n", "tensor", path_width,
                       "dtype", "shape", shape_width, "min", "max", "mean", "std", "NaN");
  std::int64_t elements = 0;
  for (const Row& row : rows) {
    const Statistics& s = row.statistics;
    elements += row.entry.shape.num_elements();
    text += shown_format("{:<{}}  {:<5}  {:<{}}  {:>11.4g}  {:>11.4g}  {:>11.4g}  {:>11.4g}  {:>6}\n",
                         row.entry.path, path_width, name_of(row.entry.dtype), row.entry.shape.to_string(),
                         shape_width, plain_nan(s.min), plain_nan(s.max), plain_nan(s.mean),
                         plain_nan(s.standard_deviation), s.num_nan);
  }
  return text + shown_format("{} tensors, {} values\n", rows.size(), elements);
}

std::string as_json(const CheckpointFile& file, const std::vector<Row>& rows) {
  const CheckpointHeader& header = file.header();
  Json tensors = Json::array();
  for (const Row& row : rows) {
    const Statistics& s = row.statistics;
    const auto extents = row.entry.shape.extents();
    tensors.push_back({{"path", row.entry.path},
                       {"dtype", name_of(row.entry.dtype)},
                       {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
                       {"min", s.min},
                       {"max", s.max},
                       {"mean", s.mean},
                       {"std", s.standard_deviation},
                       {"nan", s.num_nan}});
  }
  const Json all = {{"file", file.path()},       {"global_step", header.global_step},
                    {"epoch", header.epoch},     {"samples_consumed", header.samples_consumed},
                    {"shards", header.shards},   {"seed", header.seed},
                    {"created", header.created}, {"lockstep_version", header.lockstep_version},
                    {"digest", header.digest},   {"computed_on", header.computed_on},
                    {"config", header.config},   {"tensors", tensors}};
  Json with_data = all;
  Json kept = Json::object();
  if (header.kept != nullptr)
    for (const auto& [name, contents] : *header.kept)
      kept[name] =
          name == kSampleDescription ? Json::parse_or_null(contents) : Json{{"bytes", contents.size()}};
  with_data["data"] = std::move(kept);
  // dump() writes NaN and infinities as null.
  return with_data.dump(2) + "\n";
}

}  // namespace

int inspect_checkpoint(const std::string& path, bool digest, bool json, std::FILE* out,
                       std::string_view checkpoint) {
  const CheckpointFile file = open_chosen_checkpoint(path, checkpoint);
  if (digest) {
    file.verify();
    print_lines(out, file.header().digest + "\n");
    return 0;
  }
  const std::vector<Row> rows = read_rows(file);
  json ? print_as_is(out, as_json(file, rows)) : print_lines(out, as_table(file, rows));
  return 0;
}

namespace {

void declare(CommandOptions& options, InspectArguments& arguments) {
  add_target(options, "CHECKPOINT|RUN_DIR", arguments.target,
             "Checkpoint file, or a run directory for its newest checkpoint");
  add_checkpoint_choice(options, arguments.checkpoint);
  options.add_flag("--digest", arguments.digest, "Print one hash of all bits instead");
  add_json(options, arguments.json);
}

int run(const InspectArguments& arguments) {
  return inspect_checkpoint(arguments.target, arguments.digest, arguments.json, stdout, arguments.checkpoint);
}

}  // namespace

extern const Command kInspectCommand = {
    "inspect", "Print what a checkpoint holds: variables, shapes, statistics",
    "lockstep inspect runs/digits --digest", call_with<InspectArguments, declare, run>};

}  // namespace lockstep

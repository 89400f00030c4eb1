// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/reader_options.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "core/memory_limit.h"
#include "data/opened_samples.h"
#include "data/sample_stream.h"
#include "io/input_file.h"

namespace lockstep {

std::string resolved_path(const std::string& path, const std::string& base_directory) {
  return (std::filesystem::path(base_directory) / path).lexically_normal().string();
}

int reader_threads(const Params& params) {
  return params.as<StoreOptions>().reader_threads.value_or(kReaderThreads);
}

DatasetMemory memory_options(const Params& params, const DatasetUse& use) {
  const auto written = params.as<StoreOptions>();
  DatasetMemory memory{.timeout_seconds = written.timeout_seconds,
                       .threads = written.reader_threads.value_or(0),
                       .block_samples = written.block_samples.value_or(0),
                       .random_order = use.random_order,
                       .read_once = use.read_once};
  const auto of_host = static_cast<double>(usable_memory_bytes());
  if (written.memory_gb)
    memory.bytes = memory.shared_bytes = static_cast<std::int64_t>(*written.memory_gb * 1e9);
  else if (of_host > 0) {
    memory.bytes = static_cast<std::int64_t>(of_host / 4 / use.ranks_on_host);
    memory.shared_bytes = static_cast<std::int64_t>(of_host / 4);
  }
  memory.bytes /= use.inputs;
  memory.shared_bytes /= use.inputs;
  return memory;
}

std::optional<RowRange> row_range(const Params& params, const ParamSpec& option) {
  if (!params.has(option.name)) return std::nullopt;
  const std::vector<std::int64_t>& rows = params.integers(option.name);
  if (rows.size() != 2 || rows[0] < 0 || rows[0] >= rows[1])
    throw params.error(option.name, "must be two whole numbers, 0 <= first < last",
                       "For the first thousand rows write [0, 1000].");
  return RowRange{rows[0], rows[1]};
}

std::vector<float> channel_numbers(const Params& params, const ParamSpec& option) {
  if (!params.has(option.name)) return {};
  const std::vector<double>& values = params.reals(option.name);
  if (values.empty())
    throw params.error(option.name, "is an empty list", "Give one value per channel, one for all, or null.");
  return {values.begin(), values.end()};
}

NormalizeBy normalize_by(const Params& params, const ParamSpec& option) {
  const std::string& by = params.string(option.name);
  return by == "none"       ? NormalizeBy::none
         : by == "all"      ? NormalizeBy::all
         : by == "elements" ? NormalizeBy::elements
                            : NormalizeBy::channels;
}

FeatureTransform transform_options(const Params& params) {
  auto transform = params.as<FeatureTransform>();
  if (transform.normalize != NormalizeBy::none && !(transform.mean.empty() && transform.std.empty()))
    throw params.error(option_name<&FeatureTransform::normalize>(params),
                       "computes mean and std, but they are given, too",
                       "Leave out normalize, or mean and std.");
  return transform;
}

void check_feature_shape(const Shape& found, const Shape& wanted, const std::string& source) {
  if (found == wanted) return;
  throw Error(ErrorKind::data,
              fmt::format("its samples have the shape {}, but the model takes {}", found.to_string(),
                          wanted.to_string()),
              source, "Give a file of the same form as the training data.");
}

const std::string& only_file(const InputRequest& request, std::string_view reader) {
  if (request.paths.size() == 1) return request.paths.front();
  throw Error(ErrorKind::config,
              fmt::format("the reader {} takes one file, but {} were given", reader, request.paths.size()),
              request.paths[1], "Predict one file after the other.");
}

void name_classes(OpenedSamples& data, const Params& params, std::span<const ParamSpec> table,
                  const std::string& base_directory) {
  constexpr std::string_view kName = "class_names";
  if (std::ranges::find(table, kName, &ParamSpec::name) == table.end()) return;
  const std::optional<std::string> path = params.as<CommonOptions>().class_names;
  if (!path) return;
  if (!data.parts().class_names.empty())
    throw params.error(kName, "is given, but the data name their classes themselves", "Leave it out.");
  if (data.parts().label_kind != LabelKind::indices)
    throw params.error(kName, "is given, but the labels are no class indices", "Leave it out.");
  InputFile file(resolved_path(*path, base_directory));
  LineReader lines(file);
  std::vector<std::string> names;
  for (std::string_view line; lines.next(line);) {
    const auto fail = [&](std::string what) {
      throw Error(ErrorKind::data, std::move(what),
                  fmt::format("{}, line {}", file.path(), lines.line_number()),
                  "Each class needs a line with a name of its own.");
    };
    if (line.empty()) fail("is empty");
    if (std::ranges::find(names, line) != names.end()) fail(fmt::format("names the class '{}' again", line));
    names.emplace_back(line);
  }
  if (names.empty())
    throw Error(ErrorKind::data, "names no class", file.path(), "Write a line with the name of each class.");
  data.name_classes(std::move(names));
}

bool is_class_index(double label) {
  return label == std::floor(label) && label >= std::numeric_limits<std::int32_t>::min() &&
         label <= std::numeric_limits<std::int32_t>::max();
}

void set_labels_by_value(DatasetParts& parts, const std::vector<double>& labels) {
  if (std::ranges::all_of(labels, is_class_index)) {
    parts.label_indices.assign(labels.begin(), labels.end());
  } else {
    parts.label_rows.assign(labels.begin(), labels.end());
  }
}

}  // namespace lockstep

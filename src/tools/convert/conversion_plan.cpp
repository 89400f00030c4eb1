// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/convert/conversion_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/range.h"
#include "data/sample_mixing.h"
#include "data/transform_list.h"
#include "io/output_file.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kChunkBytes = std::int64_t{1} << 18;
/// What a thread reads at a time, at least.
constexpr std::int64_t kItemBytes = std::int64_t{1} << 20;

struct Ending {
  std::string_view ending;
  SampleFormat format;
};
constexpr Ending kEndings[] = {
    {".h5", SampleFormat::hdf5}, {".hdf5", SampleFormat::hdf5},         {".npy", SampleFormat::npy},
    {".npz", SampleFormat::npz}, {".tfrecord", SampleFormat::tfrecord}, {".csv", SampleFormat::csv},
    {".tsv", SampleFormat::csv}};

/// "dir/out.h5" as "dir/out" and ".h5". A name without an ending has an empty one.
std::pair<std::string, std::string> split_name(const std::string& output) {
  const fs::path path(output);
  const std::string ending = path.extension().string();
  return {output.substr(0, output.size() - ending.size()), ending};
}

std::string_view reader_of(SampleFormat format) {
  switch (format) {
    case SampleFormat::hdf5:
      return "hdf5";
    case SampleFormat::npy:
    case SampleFormat::npz:
      return "npy";
    case SampleFormat::tfrecord:
      return "tfrecord";
    case SampleFormat::csv:
      return "csv";
    case SampleFormat::png:
    case SampleFormat::jpeg:
      return "images";
  }
  return "";
}

Node text(const std::string& value) {
  Node node = Node::scalar(value);
  node.quoted = true;
  return node;
}

Node shape_node(const Shape& shape) {
  Node list;
  list.kind = Node::Kind::list;
  for (const std::int64_t extent : shape.extents())
    list.items.push_back(Node::scalar(std::to_string(extent)));
  return list;
}

}  // namespace

SampleFormat sample_format(const std::string& name, const std::string& output) {
  if (name == "npy") return output.ends_with(".npz") ? SampleFormat::npz : SampleFormat::npy;
  for (const auto& [known, format] :
       {std::pair{"hdf5", SampleFormat::hdf5}, std::pair{"npz", SampleFormat::npz},
        std::pair{"tfrecord", SampleFormat::tfrecord}, std::pair{"csv", SampleFormat::csv},
        std::pair{"png", SampleFormat::png}, std::pair{"jpeg", SampleFormat::jpeg}})
    if (name == known) return format;
  std::vector<std::string_view> known;
  for (const Ending& ending : kEndings) known.push_back(ending.ending);
  const std::string ending(output_ending(output, known));
  return std::find_if(std::begin(kEndings), std::end(kEndings),
                      [&](const Ending& candidate) { return candidate.ending == ending; })
      ->format;
}

void ConversionPlan::choose_sizes(const SampleSource& source, std::optional<std::int64_t> chunk) {
  const std::int64_t bytes = source.sample_bytes();
  if (format == SampleFormat::hdf5)
    chunk_samples = chunk.value_or(std::max<std::int64_t>(1, kChunkBytes / bytes));
  // HDF5 wants no chunk larger than its dataset: the smallest shard decides, so that all are alike.
  chunk_samples = std::clamp<std::int64_t>(chunk_samples, 1, samples / shards);
  const std::int64_t wanted =
      std::max(source.data().blocks().block_samples(), std::max<std::int64_t>(1, kItemBytes / bytes));
  item_samples = std::max<std::int64_t>(1, wanted / chunk_samples) * chunk_samples;
}

Range ConversionPlan::samples_of(std::int64_t shard) const {
  // floor(i n / k), as folds are cut.
  const auto at = [&](std::int64_t i) { return samples / shards * i + samples % shards * i / shards; };
  return {at(shard), at(shard + 1)};
}

std::int64_t image_shards(std::int64_t samples) {
  constexpr std::int64_t kImages = 256, kMost = 10000;
  return std::clamp<std::int64_t>(samples / kImages, 1, kMost);
}

std::vector<std::string> ConversionPlan::files(std::int64_t shard) const {
  if (is_image(format)) return {fmt::format("{}/images-{:05}.txt", records_folder(), shard)};
  const auto [stem, ending] = split_name(output);
  const std::string of = shards == 1 ? "" : fmt::format("-{:05}-of-{:05}", shard, shards);
  std::vector<std::string> files{stem + of + ending};
  if (files_of(format, labels) > 1) files.push_back(stem + of + ".labels" + ending);
  return files;
}

std::vector<std::string> ConversionPlan::patterns() const {
  if (is_image(format)) return {output};
  if (shards == 1) return files(0);
  const auto [stem, ending] = split_name(output);
  const std::string of = fmt::format("-*-of-{:05}", shards);
  std::vector<std::string> files{stem + of + ending};
  if (files_of(format, labels) > 1) files.push_back(stem + of + ".labels" + ending);
  return files;
}

std::string ConversionPlan::classes_path() const { return split_name(output).first + ".classes.txt"; }

std::string ConversionPlan::records_folder() const {
  const fs::path path(output);
  return (path.parent_path() / (fmt::format(".{}.convert", path.filename().string()))).string();
}

Node section_of(const ConversionPlan& plan, const SampleSource& source,
                const std::vector<std::string>& files) {
  Node section;
  section.kind = Node::Kind::map;
  const auto add = [&](std::string key, Node value) {
    section.entries.emplace_back(std::move(key), std::move(value));
  };
  add("format", Node::scalar(std::string(reader_of(plan.format))));
  if (plan.format == SampleFormat::npy) {
    add("features", text(files[0]));
    if (plan.labels) add("labels", text(files[1]));
    return section;
  }
  add("path", text(files[0]));
  if (is_image(plan.format)) {
    if (source.shape().last() == 1) add("channels", Node::scalar("1"));
    if (!plan.labels) add("labels", Node::scalar("none"));
    const std::vector<std::string>& names = source.data().class_names();
    if (plan.labels && !std::ranges::is_sorted(names)) {
      Node classes;
      classes.kind = Node::Kind::list;
      for (const std::string& name : names) classes.items.push_back(text(name));
      add("classes", std::move(classes));
    }
    return section;
  }
  if (plan.format != SampleFormat::csv) {
    add("features", text(plan.file.features));
    if (plan.labels) add("labels", text(plan.file.labels));
  } else {
    add("header", Node::scalar("true"));
    if (plan.file.delimiter != ',') add("delimiter", text(std::string(1, plan.file.delimiter)));
    if (!plan.labels) add("label_column", Node::scalar("null"));
  }
  if (plan.format == SampleFormat::csv || plan.format == SampleFormat::tfrecord)
    add("shape", shape_node(source.shape()));
  if (plan.format == SampleFormat::tfrecord && source.type() != DType::f32)
    add("dtype", Node::scalar(std::string(name_of(source.type()))));
  return section;
}

void add_value_options(Node& section, const Node& options, bool transforms) {
  for (const auto& [key, value] : options.entries) {
    const std::string& name = key;
    const auto is_in = [&](std::span<const ParamSpec> table) {
      return std::any_of(table.begin(), table.end(),
                         [&](const ParamSpec& spec) { return spec.name == name; });
    };
    constexpr std::array<std::string_view, 5> kScaling{"scale", "offset", "mean", "std", "normalize"};
    const bool before =
        std::find(kScaling.begin(), kScaling.end(), name) != kScaling.end() || is_in(transforms_table());
    if ((before && transforms) || is_in(mixing_table())) section.entries.emplace_back(key, value);
  }
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/data_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "data/reader_table.h"

namespace lockstep {

namespace {

constexpr ParamSpec kDataKeys[] = {
    {"format", ParamType::string, kRequired, "", "Name of the reader."},
    {"train", ParamType::node, "null", "", "Options of the training set that differ from the common ones."},
    {"eval", ParamType::node, "null", "",
     "Options of the evaluation set that differ from the common ones. null: no evaluation."},
};
bool is_data_key(std::string_view key) {
  return std::any_of(std::begin(kDataKeys), std::end(kDataKeys),
                     [&](const ParamSpec& spec) { return spec.name == key; });
}

std::string data_format(const Node& data) {
  const Node* format = data.find("format");
  if (format == nullptr || format->kind != Node::Kind::scalar)
    throw Error(ErrorKind::config, "section data has no format", data.where,
                "Name a reader: format: csv, idx or hdf5.");
  return format->text;
}

/// The options of a split ("train" or "eval"): the common ones, overridden by the split's own.
Node split_options(const Node& data, std::string_view split) {
  Node merged;
  merged.kind = Node::Kind::map;
  merged.where = data.where;
  auto put = [&](const std::string& key, const Node& value, const std::string& where) {
    for (std::size_t i = 0; i < merged.entries.size(); ++i)
      if (merged.entries[i].first == key) {
        merged.entries[i].second = value;
        merged.entry_where[i] = where;
        return;
      }
    merged.entries.emplace_back(key, value);
    merged.entry_where.push_back(where);
  };
  auto put_all = [&](const Node& map) {
    for (std::size_t i = 0; i < map.entries.size(); ++i)
      put(map.entries[i].first, map.entries[i].second,
          i < map.entry_where.size() ? map.entry_where[i] : map.where);
  };
  for (std::size_t i = 0; i < data.entries.size(); ++i)
    if (!is_data_key(data.entries[i].first))
      put(data.entries[i].first, data.entries[i].second,
          i < data.entry_where.size() ? data.entry_where[i] : data.where);
  if (const Node* own = data.find(split); own != nullptr) {
    if (own->kind != Node::Kind::map && own->kind != Node::Kind::null)
      throw Error(ErrorKind::config, fmt::format("data.{} must be a map of options", split), own->where);
    put_all(*own);
  }
  return merged;
}

Params reader_options(const Node& section, const std::string& format, std::string_view split) {
  return Params(split_options(section, split), find_reader(format, section.find("format")->where).table,
                fmt::format("section data ({}, reader {})", split, format));
}

}  // namespace

std::span<const ParamSpec> data_table() { return kDataKeys; }

DataOptions data_options(const Node& section) {
  DataOptions options{.format = data_format(section), .train = {}, .eval = {}};
  options.train = reader_options(section, options.format, "train");
  if (const Node* own = section.find("eval"); own != nullptr && !is_null(*own))
    options.eval = reader_options(section, options.format, "eval");
  return options;
}

std::unique_ptr<Dataset> open_training_set(const DataOptions& options, const std::string& base_directory) {
  return open_dataset(options.format, options.train, base_directory);
}

std::unique_ptr<Dataset> open_evaluation_set(const DataOptions& options, const std::string& base_directory) {
  return options.eval ? open_dataset(options.format, *options.eval, base_directory) : nullptr;
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/data_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "config/option.h"
#include "config/synonyms.h"
#include "core/error.h"
#include "data/default_labels.h"
#include "data/merged_options.h"
#include "data/reader_table.h"
#include "data/step_window.h"
#include "data/whitening.h"

namespace lockstep {

namespace {

constexpr ParamSpec kDataKeys[] = {
    {"format", ParamType::string, kRequired, {}, "Name of the reader."},
    {"inputs", ParamType::node, "null", in_words("map of names to options, or null"),
     "Several inputs per sample, which layers read by these names: each has the reader's options that differ "
     "from the common ones, and may have a format of its own. null: one input, features."},
    {"sources", ParamType::node, "null", in_words("map of names to options, or null"),
     "The training set is mixed from several sources: each has the reader's options that differ from the "
     "common ones, may have a format of its own, and a `share` of each epoch. null: one source."},
    {"targets", ParamType::node, "null", in_words("map of names to options, or null"),
     "Labels by name, for heads and sample weights: the values that a reader gives as features, with options "
     "as in inputs. null: the labels that the reader gives."},
    {"train", ParamType::node, "null", {}, "Options of the training set that differ from the common ones."},
    {"eval",
     ParamType::node,
     "null",
     {},
     "Options of the evaluation set that differ from the common ones. null: no evaluation."},
};

std::string data_format(const Node& data) {
  if (data.kind != Node::Kind::map)
    throw Error(ErrorKind::config, "section data must be a map of options", data.where,
                "Write one indented 'name: value' per line.");
  const Node* format = data.find("format");
  if (format == nullptr || format->kind != Node::Kind::scalar)
    throw Error(ErrorKind::config, "section data has no format", data.where,
                "Name a reader: format: csv, hdf5 or npy.");
  find_reader(format->text, format->where);
  return format->text;
}

std::string subject_of(std::string_view split, std::string_view format, std::string_view input) {
  return input.empty() ? fmt::format("section data ({}, reader {})", split, format)
                       : fmt::format("{} ({}, reader {})", input, split, format);
}

Params reader_options(Node node, const std::string& format, std::string_view split, std::string_view input) {
  const std::span<const ParamSpec> own = find_reader(format).table;
  std::vector<ParamSpec> table(own.begin(), own.end());
  for (const auto& beside : {transforms_table(), choice_table(), mixing_table()})
    table.insert(table.end(), beside.begin(), beside.end());
  Params params(std::move(node), table, subject_of(split, format, input));
  // Throws what is wrong with them.
  TransformList{params};
  whiten_options(params);
  mixing_options(params);
  return params;
}

/// Which samples are used, and what is mixed, is the same for all inputs.
bool concerns_samples(std::string_view key) {
  for (const auto& table : {choice_table(), mixing_table()})
    if (std::ranges::find(table, key, &ParamSpec::name) != table.end()) return true;
  return false;
}

/// Sources of one set are scaled, transformed and read alike.
bool is_common_to_sources(std::string_view key) {
  constexpr std::string_view kKeys[] = {"scale",       "offset",          "mean",          "std",
                                        "normalize",   "transforms",      "memory_gb",     "timeout_seconds",
                                        "bad_records", "max_bad_records", "block_samples", "whiten"};
  return std::ranges::find(kKeys, key) != std::end(kKeys);
}

bool is_share(std::string_view key) { return key == "share"; }

std::string format_of_input(const Node& section, const Node& input) {
  return input.find("format") != nullptr ? data_format(input) : data_format(section);
}

bool takes(std::string_view format, std::string_view key) {
  const auto has_key = [&](std::span<const ParamSpec> table) {
    return std::ranges::find(table, key, &ParamSpec::name) != table.end();
  };
  return has_key(find_reader(format).table) || has_key(transforms_table());
}

/// A common option is for those inputs whose reader takes it. One that no reader takes is for all, which will
/// refuse it.
bool concerns_input(const Node& section, const Node& input, std::string_view key) {
  if (takes(format_of_input(section, input), key)) return true;
  for (const char* const sets : {"inputs", "targets"})
    if (const Node* const found = section.find(sets))
      for (const auto& [name, other] : found->entries)
        if (other.kind == Node::Kind::map && takes(format_of_input(section, other), key)) return false;
  return section.find("inputs") != nullptr || !takes(data_format(section), key);
}

void require_map(const Node& node, const std::string& what) {
  if (node.kind != Node::Kind::map && node.kind != Node::Kind::null)
    throw Error(ErrorKind::config, what + " must be a map of options", node.where,
                advice_for_value(what, node.text, "Write one indented 'name: value' per line."));
}

/// Options of the evaluation set alone may not mix its samples.
void refuse_mixing(const Node& eval) {
  if (const Node* mix = eval.find("mix"); mix != nullptr && !is_null(*mix))
    throw Error(ErrorKind::config, "data.eval.mix: samples of an evaluation are not mixed", mix->where,
                "Write mix under data.train.");
}

/// Adds the mistakes of the evaluation set but those that are in the options common to both sets: they are
/// among `mistakes` as mistakes of the training set.
void add_own(ErrorCollector& mistakes, const ErrorCollector& of_eval, const std::string& format,
             const std::string& path) {
  const std::string train = subject_of("train", format, path), eval = subject_of("eval", format, path);
  std::set<std::pair<std::string, std::string>> known;
  for (const Error& error : mistakes.errors()) known.emplace(error.where(), error.what_happened());
  for (const Error& error : of_eval.errors()) {
    std::string what = error.what_happened();
    if (const auto at = what.find(eval); at != std::string::npos) what.replace(at, eval.size(), train);
    if (!known.contains({error.where(), what})) mistakes.add(error);
  }
}

/// Both sets are normalised and whitened by the numbers of the training set.
void require_same_normalization(const DataInput& input) {
  if (whiten_options(input.train) != whiten_options(*input.eval))
    throw input.eval->error("whiten", "must be the same for both sets",
                            "Write it beside format: the numbers are those of the training set.");
  const std::span<const ParamSpec> table = find_reader(input.format).table;
  // Readers of text have no such option.
  if (std::ranges::find(table, "normalize", &ParamSpec::name) == table.end()) return;
  if (input.train.as<FeatureTransform>().normalize != input.eval->as<FeatureTransform>().normalize)
    throw input.eval->error("normalize", "must be the same for both sets",
                            "Write it beside format: the numbers are those of the training set.");
}

bool has_section(const Node& node, std::string_view name) {
  const Node* found = node.find(name);
  return found != nullptr && !is_null(*found);
}

bool has_eval(const Node& section) {
  if (has_section(section, "eval")) return true;
  for (const char* const key : {"inputs", "targets"})
    if (const Node* const sets = section.find(key))
      for (const auto& [name, own] : sets->entries)
        if (has_section(own, "eval")) return true;
  return false;
}

/// Reads an entry of data.inputs or data.targets (`key_of_sets`).
DataInput input_options(const Node& section, std::string_view key_of_sets, const std::string& name,
                        const Node& own, ErrorCollector& mistakes) {
  DataInput input{.name = name};
  const std::string path = fmt::format("data.{}.{}", key_of_sets, name);
  require_map(own, path);
  for (const auto& [key, value] : own.entries) {
    const bool nested = key == "train" || key == "eval";
    if (nested) require_map(value, path + "." + key);
    for (const auto& [inner, option] : nested ? value.entries : own.entries)
      if (concerns_samples(inner))
        throw Error(ErrorKind::config,
                    fmt::format("{}: {} chooses samples, which all inputs have in common", path, inner),
                    option.where, fmt::format("Write {} beside inputs.", inner));
  }
  input.format = format_of_input(section, own);
  const auto options = [&](std::string_view split) {
    return reader_options(with_window_use(split_options(section, own, split), key_of_sets), input.format,
                          split, path);
  };
  mistakes.attempt([&] { input.train = options("train"); });
  ErrorCollector of_eval;
  of_eval.attempt([&] {
    if (!has_eval(section)) return;
    input.eval = options("eval");
    if (mistakes.errors().empty()) require_same_normalization(input);
  });
  add_own(mistakes, of_eval, input.format, path);
  return input;
}

/// Reads data.inputs or data.targets (`key`).
std::vector<DataInput> read_sets(const Node& section, std::string_view key, ErrorCollector& mistakes) {
  const Node& sets = *section.find(key);
  if (sets.kind != Node::Kind::map || sets.entries.empty())
    throw Error(ErrorKind::config, fmt::format("data.{} must be a map of names to options", key), sets.where,
                "Write one indented 'name: {options}' per line.");
  std::vector<DataInput> read;
  for (const auto& set : sets.entries)
    mistakes.attempt([&] { read.push_back(input_options(section, key, set.first, set.second, mistakes)); });
  return read;
}

/// Reads data.inputs.
void read_inputs(DataOptions& options, const Node& section, ErrorCollector& mistakes) {
  std::vector<DataInput> inputs = read_sets(section, "inputs", mistakes);
  mistakes.throw_if_any();
  static_cast<DataInput&>(options) = std::move(inputs.front());
  inputs.erase(inputs.begin());
  options.others = std::move(inputs);
  const auto samples = [&](std::string_view split) {
    std::vector<ParamSpec> table(choice_table().begin(), choice_table().end());
    table.insert(table.end(), mixing_table().begin(), mixing_table().end());
    return Params(filtered(split_options(section, split), concerns_samples), table,
                  fmt::format("section data ({})", split));
  };
  mistakes.attempt([&] {
    const Params params = samples("train");
    options.train_choice = choice_options(params, false);
    options.mixing = mixing_options(params);
  });
  if (has_eval(section))
    mistakes.attempt([&] { options.eval_choice = choice_options(samples("eval"), true); });
}

/// Reads an entry of data.sources.
DataSource read_source(const Node& section, const std::string& name, const Node& own) {
  const std::string path = fmt::format("data.sources.{}", name);
  require_map(own, path);
  for (const auto& [key, value] : own.entries)
    if (key == "train" || key == "eval" || concerns_samples(key) || is_common_to_sources(key))
      throw Error(ErrorKind::config, fmt::format("{}: {} is the same for all sources", path, key),
                  value.where, fmt::format("Write {} beside sources.", key));
  auto source = Params(filtered(own, is_share), source_table(), path).as<DataSource>();
  source.name = name;
  source.where = own.where;
  source.format = format_of_input(section, own);
  source.params = reader_options(source_options(section, own), source.format, "train", path);
  return source;
}

/// Reads data.sources.
void read_sources(DataOptions& options, const Node& section, ErrorCollector& mistakes) {
  const Node& sources = *section.find("sources");
  if (sources.kind != Node::Kind::map || sources.entries.empty())
    throw Error(ErrorKind::config, "data.sources must be a map of names to options", sources.where,
                "Write one indented 'name: {options}' per line.");
  for (const auto& source : sources.entries)
    mistakes.attempt([&] { options.sources.push_back(read_source(section, source.first, source.second)); });
  mistakes.throw_if_any();
  const auto shares =
      std::ranges::count_if(options.sources, [](const auto& source) { return source.share.has_value(); });
  if (shares != 0 && shares != std::ssize(options.sources))
    throw Error(ErrorKind::config, "some of data.sources have a share, and others have none", sources.where,
                "Give each a share, or none: sources are then as large as they are.");
  options.format = options.sources.front().format;
  options.train = options.sources.front().params;
  options.train_choice = choice_options(options.train, false);
  options.mixing = mixing_options(options.train);
  options.train_choice.mixes_sources = shares != 0;
  if (has_eval(section) && data_format(section) != options.format)
    throw Error(ErrorKind::config,
                fmt::format("the first of data.sources has the format {}, but the evaluation set {}",
                            options.format, data_format(section)),
                sources.where, "Name a source with the format of the section first.");
  if (shares != 0 && options.train_choice.balances)
    throw options.train.error("balance", "and shares of data.sources both say what an epoch has",
                              "Give one of them.");
}

/// Reads a section without data.inputs.
void read_only_input(DataOptions& options, const Node& section, ErrorCollector& mistakes) {
  if (has_section(section, "sources")) {
    read_sources(options, section, mistakes);
  } else {
    options.format = data_format(section);
    mistakes.attempt([&] {
      options.train = reader_options(split_options(section, "train"), options.format, "train", "");
      options.train_choice = choice_options(options.train, false);
      options.mixing = mixing_options(options.train);
    });
  }
  ErrorCollector of_eval;
  of_eval.attempt([&] {
    if (!has_eval(section)) return;
    options.eval = reader_options(split_options(section, "eval"), options.format, "eval", "");
    if (mistakes.errors().empty()) require_same_normalization(options);
    options.eval_choice = choice_options(*options.eval, true);
  });
  add_own(mistakes, of_eval, options.format, "");
}

Node written_split_options(const Node& data, std::string_view split) {
  MergedOptions merged(data.where);
  merged.put(filtered(data, [](std::string_view key) { return !is_stage_key(key); }), kDataKeys);
  if (const Node* own = data.find(split); own != nullptr) {
    require_map(*own, fmt::format("data.{}", split));
    merged.put(*own, {});
  }
  return merged.take();
}

}  // namespace

Node split_options(const Node& data, std::string_view split) {
  Node options = written_split_options(data, split);
  const bool has_several = has_section(data, "inputs") || has_section(data, "sources");
  if (has_several || !has_section(data, "targets")) return options;
  return without_default_labels(std::move(options), data_format(data));
}

Node split_options(const Node& data, const Node& input, std::string_view split) {
  MergedOptions merged(input.where);
  merged.put(filtered(written_split_options(data, split),
                      [&](std::string_view key) {
                        return !concerns_samples(key) && concerns_input(data, input, key);
                      }),
             {});
  merged.put(input, kDataKeys);
  if (const Node* own = input.find(split); own != nullptr) merged.put(*own, {});
  return has_section(data, "targets") ? without_default_labels(merged.take(), format_of_input(data, input))
                                      : merged.take();
}

Node source_options(const Node& data, const Node& source) {
  const Node& sources = *data.find("sources");
  const std::string format = format_of_input(data, source);
  // A common option is for those sources whose reader takes it. One that no reader takes is for all.
  const auto concerns = [&](std::string_view key) {
    if (concerns_samples(key) || takes(format, key)) return true;
    return std::ranges::none_of(sources.entries, [&](const auto& entry) {
      return entry.second.kind == Node::Kind::map && takes(format_of_input(data, entry.second), key);
    });
  };
  MergedOptions merged(source.where);
  merged.put(filtered(split_options(data, "train"), concerns), {});
  merged.put(filtered(source, std::not_fn(is_share)), kDataKeys);
  return merged.take();
}

std::span<const ParamSpec> source_table() {
  static constexpr ParamSpec kSourceTable[] = {option<&DataSource::share>(
      "share", "null", above(0).up_to(1e9).or_null(), "of an epoch, relative to others")};
  return kSourceTable;
}

std::span<const ParamSpec> data_table() { return kDataKeys; }

DataOptions data_options(const Node& section) {
  DataOptions options;
  ErrorCollector mistakes;
  mistakes.attempt([&] { options.stage = stage_options(section); });
  if (const Node* eval = section.find("eval")) mistakes.attempt([&] { refuse_mixing(*eval); });
  if (has_section(section, "inputs") && has_section(section, "sources"))
    throw Error(ErrorKind::config, "data.sources and data.inputs are both given",
                section.find("sources")->where, "Sources have one input: write inputs: null, or no sources.");
  if (has_section(section, "inputs"))
    read_inputs(options, section, mistakes);
  else
    read_only_input(options, section, mistakes);
  if (has_section(section, "targets")) options.targets = read_sets(section, "targets", mistakes);
  for (const DataInput& target : options.targets)
    for (std::size_t i = 0; i < num_inputs(options); ++i)
      if (input_of(options, i).name == target.name)
        mistakes.add(Error(ErrorKind::config,
                           fmt::format("an input and a target are both named '{}'", target.name),
                           section.find("targets")->where, "Give one of them another name."));
  mistakes.throw_if_any();
  refuse_divided_windows(options);
  return options;
}

std::size_t num_inputs(const DataOptions& options) { return 1 + options.others.size(); }

const DataInput& input_of(const DataOptions& options, std::size_t input) {
  return input == 0 ? options : options.others[input - 1];
}

std::vector<const DataInput*> sets_of(const DataOptions& options) {
  std::vector<const DataInput*> sets;
  for (std::size_t i = 0; i < num_inputs(options); ++i) sets.push_back(&input_of(options, i));
  for (const DataInput& target : options.targets) sets.push_back(&target);
  return sets;
}

}  // namespace lockstep

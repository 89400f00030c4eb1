// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/data_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/child_process.h"
#include "core/error.h"
#include "data/class_lists.h"
#include "data/data_files.h"
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
  if (data.kind != Node::Kind::map)
    throw Error(ErrorKind::config, "section data must be a map of options", data.where,
                "Write one indented 'name: value' per line.");
  const Node* format = data.find("format");
  if (format == nullptr || format->kind != Node::Kind::scalar)
    throw Error(ErrorKind::config, "section data has no format", data.where,
                "Name a reader: format: csv, hdf5 or npy.");
  return format->text;
}

std::string subject_of(std::string_view split, std::string_view format) {
  return fmt::format("section data ({}, reader {})", split, format);
}

Params reader_options(const Node& section, const std::string& format, std::string_view split) {
  const std::span<const ParamSpec> own = find_reader(format, section.find("format")->where).table;
  std::vector<ParamSpec> table(own.begin(), own.end());
  table.insert(table.end(), transforms_table().begin(), transforms_table().end());
  table.insert(table.end(), choice_table().begin(), choice_table().end());
  table.insert(table.end(), mixing_table().begin(), mixing_table().end());
  Params params(split_options(section, split), table, subject_of(split, format));
  // Throws what is wrong with them.
  TransformList{params};
  mixing_options(params);
  return params;
}

/// Options of the evaluation set alone may not mix its samples.
void refuse_mixing(const Node& eval) {
  if (const Node* mix = eval.find("mix"); mix != nullptr && !is_null(*mix))
    throw Error(ErrorKind::config, "data.eval.mix: samples of an evaluation are not mixed", mix->where,
                "Write mix under data.train.");
}

/// Adds the mistakes of the evaluation set but those that are in the options common to both sets: they are
/// among `mistakes` as mistakes of the training set.
void add_own(ErrorCollector& mistakes, const ErrorCollector& of_eval, const std::string& format) {
  const std::string train = subject_of("train", format), eval = subject_of("eval", format);
  std::set<std::pair<std::string, std::string>> known;
  for (const Error& error : mistakes.errors()) known.emplace(error.where(), error.what_happened());
  for (const Error& error : of_eval.errors()) {
    std::string what = error.what_happened();
    if (const auto at = what.find(eval); at != std::string::npos) what.replace(at, eval.size(), train);
    if (!known.contains({error.where(), what})) mistakes.add(error);
  }
}

}  // namespace

Node split_options(const Node& data, std::string_view split) {
  Node merged;
  merged.kind = Node::Kind::map;
  merged.where = data.where;
  std::unordered_map<std::string_view, std::size_t> places;  // the keys live in `data`
  auto put = [&](const std::string& key, const Node& value, const std::string& where) {
    const auto [place, is_new] = places.try_emplace(key, merged.entries.size());
    if (is_new) {
      merged.entries.emplace_back(key, value);
      merged.entry_where.push_back(where);
    } else {
      merged.entries[place->second].second = value;
      merged.entry_where[place->second] = where;
    }
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

std::span<const ParamSpec> data_table() { return kDataKeys; }

DataOptions data_options(const Node& section) {
  DataOptions options;
  options.format = data_format(section);
  ErrorCollector mistakes;
  mistakes.attempt([&] {
    options.train = reader_options(section, options.format, "train");
    options.train_choice = choice_options(options.train, false);
  });
  ErrorCollector of_eval;
  of_eval.attempt([&] {
    if (const Node* own = section.find("eval"); own != nullptr && !is_null(*own)) {
      refuse_mixing(*own);
      options.eval = reader_options(section, options.format, "eval");
      options.eval_choice = choice_options(*options.eval, true);
    }
  });
  add_own(mistakes, of_eval, options.format);
  mistakes.throw_if_any();
  return options;
}

void try_data_files(DataOptions& options, const std::string& base_directory,
                    std::span<const std::string> inputs) {
  const auto trial = find_reader(options.format).trial;
  if (trial == nullptr) return;
  ChildNote file;
  const auto opening = [&](const std::string& path) { file.set(path); };
  const auto outcome = run_in_child([&] {
    trial(options.train, base_directory, nullptr, opening);
    if (options.eval) trial(*options.eval, base_directory, nullptr, opening);
    if (inputs.empty()) return;
    const std::vector<std::string> paths = data_files(inputs, "");
    trial(options.train, base_directory, &paths, opening);
  });
  if (outcome)
    options.failure =
        Error(ErrorKind::data, fmt::format("damaged: the library that reads {} {}", options.format, *outcome),
              file.text(), "Copy or make the file again. Found by opening it in a process of its own.");
}

namespace {
std::unique_ptr<Dataset> open_chosen(const DataOptions& options, bool evaluation,
                                     const std::string& base_directory, DatasetUse use) {
  if (options.failure) throw Error(*options.failure);
  const ChoiceOptions& choice = evaluation ? options.eval_choice : options.train_choice;
  use.random_order = use.random_order || choice.scatters();
  use.read_once = use.read_once && !choice.scatters() && !choice.needs_labels();
  const Params& params = evaluation ? *options.eval : options.train;
  std::unique_ptr<Dataset> data = open_dataset(options.format, params, base_directory, use);
  data->set_transforms(TransformList(params), !evaluation);
  if (const auto mixing = mixing_options(params); mixing && !evaluation) data->set_mixing(*mixing);
  std::vector<std::int32_t> labels;
  if (choice.needs_labels()) labels = class_labels(*data);
  data->choose(choose_samples(choice, evaluation, data->size(), labels));
  if (choice.balances) data->balance(balance_classes(choice, data->choice().get(), labels));
  return data;
}
}  // namespace

std::unique_ptr<Dataset> open_training_set(const DataOptions& options, const std::string& base_directory,
                                           const DatasetUse& use) {
  return open_chosen(options, false, base_directory, use);
}

std::unique_ptr<Dataset> open_evaluation_set(const DataOptions& options, const std::string& base_directory,
                                             const DatasetUse& use) {
  if (options.failure) throw Error(*options.failure);
  return options.eval ? open_chosen(options, true, base_directory, use) : nullptr;
}

}  // namespace lockstep

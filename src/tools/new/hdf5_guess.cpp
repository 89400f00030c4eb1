// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which datasets of an HDF5 file, a netCDF-4 file or a MATLAB file of version 7.3 are features and labels.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "core/message_lines.h"
#include "core/name_list.h"
#include "core/shell_word.h"
#include "core/shown_text.h"
#include "data/reader_table.h"
#include "data/readers/hdf5_preview.h"
#include "io/hdf5_contents.h"
#include "tools/new/array_guess.h"
#include "tools/new/data_guess.h"
#include "tools/new/table_contents.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostLooked = 100'000;  ///< values of a dataset

/// The groups in which pandas keeps a table: numbers of its rows and names of its columns lie next to values
/// without labels.
std::set<std::string> pandas_groups(const std::vector<Hdf5Entry>& entries) {
  std::set<std::string> groups;
  for (const Hdf5Entry& entry : entries) {
    const std::string folder = group_of(entry.name), name = entry.name.substr(folder.size());
    const bool of_series =
        name == "values" && std::ranges::find(entries, folder + "index", &Hdf5Entry::name) != entries.end();
    if (!folder.empty() && (name == "block0_values" || name == "axis0" || of_series)) groups.insert(folder);
    if (const auto at = entry.name.find("_i_table/"); at != std::string::npos)
      groups.insert(entry.name.substr(0, at));
  }
  return groups;
}

bool counts(const std::vector<double>& values) {
  for (std::size_t i = 1; i < values.size(); ++i)
    if (values[i] != values[i - 1] + 1) return false;
  return values.size() > 2;
}

/// At least every second text is one that was there before.
bool repeat(const std::vector<std::string>& texts) {
  return std::set<std::string>(texts.begin(), texts.end()).size() * 2 <= texts.size();
}

NamedArray array_of(const Hdf5Entry& entry, const std::string& path, const std::set<std::string>& pandas) {
  using Kind = NamedArray::Kind;
  NamedArray array{.name = entry.name, .extents = entry.extents};
  array.kind = entry.is_whole     ? Kind::whole
               : entry.is_number  ? Kind::real
               : entry.is_text    ? Kind::text
               : entry.is_boolean ? Kind::boolean
               : entry.is_table   ? Kind::table
                                  : Kind::other;
  if (entry.is_scale) array.excluded = "is an axis";
  for (const std::string& group : pandas)
    if (entry.name.starts_with(group)) array.excluded = "is part of a table of pandas";
  array.counts_rows = [path, name = entry.name] {
    return counts(first_hdf5_numbers(path, name, kMostLooked));
  };
  array.repeats = [path, name = entry.name] { return repeat(first_hdf5_texts(path, name, kMostLooked)); };
  return array;
}

std::vector<NamedArray> arrays_of(const std::string& path) {
  const std::vector<Hdf5Entry> entries = hdf5_contents(path);
  const std::set<std::string> pandas = pandas_groups(entries);
  std::vector<NamedArray> arrays;
  for (const Hdf5Entry& entry : entries) arrays.push_back(array_of(entry, path, pandas));
  const bool only_pandas = !pandas.empty() && std::ranges::all_of(arrays, [](const NamedArray& array) {
    return !array.excluded.empty();
  });
  if (only_pandas) {
    std::string key = *pandas.begin();
    key.pop_back();
    const std::string quoted = name_in_quotes(path);
    throw error_of_lines(
        ErrorKind::data,
        shown_format("holds a table of pandas ({}), whose columns have no datasets of their own", key), path,
        fmt::format("Run: python3 -c \"import pandas; pandas.read_hdf('{0}', '{1}').to_csv('{0}.csv', "
                    "index=False)\"\n  Then: lockstep new {2}",
                    quoted, name_in_quotes(key), shell_word(quoted + ".csv")));
  }
  return arrays;
}

/// A dataset of a compound type, where nothing else has numbers in more than one axis.
const NamedArray* only_table(const std::vector<NamedArray>& arrays) {
  const NamedArray* table = nullptr;
  for (const NamedArray& array : arrays) {
    if (!array.excluded.empty() || array.extents.empty()) continue;
    if (array.extents.size() > 1 &&
        (array.kind == NamedArray::Kind::whole || array.kind == NamedArray::Kind::real))
      return nullptr;
    if (table == nullptr && array.kind == NamedArray::Kind::table && array.extents.size() == 1)
      table = &array;
  }
  return table;
}

/// Columns of a compound dataset: one with a usual name is the label; the features are the others but those
/// that number or name rows.
DataGuess guess_columns(const DataQuestion& question, const NamedArray& table) {
  std::vector<std::string> names, numbers;
  for (Hdf5ColumnLook& column : hdf5_table_columns(question.place, table.name)) {
    if (column.has_numbers) numbers.push_back(column.name);
    names.push_back(std::move(column.name));
  }
  std::string label = question.labels;
  if (label.starts_with(table.name + ".")) label = label.substr(table.name.size() + 1);
  std::size_t best = 0;
  for (const std::string& name : names)
    if (const auto rank = label_rank(name, true);
        question.labels.empty() && rank && (label.empty() || *rank < best))
      label = name, best = *rank;
  if (std::ranges::find(names, label) == names.end())
    throw Error(ErrorKind::data,
                label.empty()
                    ? fmt::format("no column of the table {} has a usual name of labels", table.name)
                    : fmt::format("the table {} has no column '{}'", table.name, label),
                question.place, fmt::format("Name one with --labels. Columns: {}", name_list(names)));
  DataGuess guess{
      "hdf5",
      fmt::format("an HDF5 file: table {}, {} rows", table.name, table.extents[0]),
      {{"path", yaml_quoted(question.path)}, {"features", table.name}, {"labels", table.name + "." + label}}};
  guess.predicts = label;
  std::vector<std::string> used, left_out;
  for (const std::string& name : names) {
    const bool is_number = std::ranges::find(numbers, name) != numbers.end();
    if (name != label) (is_number && !names_rows(name) ? used : left_out).push_back(name);
  }
  if (!left_out.empty() && !used.empty()) {
    for (std::string& name : used) name = yaml_quoted(name);
    guess.common.push_back({"columns", fmt::format("[{}]", fmt::join(used, ", "))});
    guess.notes.push_back(fmt::format("left out: {}: texts, or numbers of rows", name_list(left_out)));
  }
  return guess;
}

void set_arrays(DataGuess& guess, ChosenArrays chosen) {
  guess.notes = std::move(chosen.notes);
  guess.assumed = std::move(chosen.assumed);
  guess.predicts = chosen.labels;
  if (chosen.eval_features.empty()) {
    guess.common.push_back({"features", quoted_name(chosen.features)});
    guess.common.push_back({"labels", quoted_name(chosen.labels)});
    return;
  }
  guess.train = {{"features", quoted_name(chosen.features)}, {"labels", quoted_name(chosen.labels)}};
  guess.eval = {{"features", quoted_name(chosen.eval_features)}, {"labels", quoted_name(chosen.eval_labels)}};
  guess.has_eval = true;
}

DataGuess guess_arrays(const DataQuestion& question, const std::vector<NamedArray>& arrays,
                       const std::string& what) {
  ChosenArrays chosen = choose_arrays(arrays, question, "dataset");
  const auto features = std::ranges::find(arrays, chosen.features, &NamedArray::name);
  DataGuess guess{
      "hdf5",
      fmt::format("{}: {} and {}, {} samples", what, chosen.features, chosen.labels, features->extents[0]),
      {{"path", yaml_quoted(question.path)}}};
  set_arrays(guess, std::move(chosen));
  return guess;
}

/// MATLAB's x of 150 x 4 is 4 x 150 in the file: samples are its last axis.
[[noreturn]] void fail_reversed(const DataQuestion& question, const std::vector<NamedArray>& arrays) {
  const NamedArray* features = nullptr;
  for (const NamedArray& array : arrays)
    if (array.extents.size() >= 2 &&
        (array.kind == NamedArray::Kind::whole || array.kind == NamedArray::Kind::real) &&
        (features == nullptr || std::ssize(array.extents) > std::ssize(features->extents) ||
         array.extents[0] * array.extents.back() > features->extents[0] * features->extents.back()))
      features = &array;
  const std::string& path = question.place;
  const std::string quoted = name_in_quotes(path);
  throw error_of_lines(
      ErrorKind::data,
      fmt::format(
          "is a MATLAB file of version 7.3, which has its axes in reverse order{}: samples are not the "
          "first axis",
          features == nullptr
              ? ""
              : shown_format(" ({} is {})", features->name, fmt::join(features->extents, " x "))),
      path,
      fmt::format("Run: python3 -c \"import h5py, numpy; f = h5py.File('{0}'); "
                  "numpy.savez('{0}.npz', **{{k: numpy.ascontiguousarray(numpy.moveaxis(v[()].T, -1, 0) "
                  "if v.ndim > 2 else v[()].T) for k, v in f.items() if isinstance(v, h5py.Dataset)}})\"\n  "
                  "Then: lockstep new {1}",
                  quoted, shell_word(quoted + ".npz")));
}

/// With the axes that MATLAB shows; `samples_last`: the last one of pictures and volumes is that of samples.
std::vector<NamedArray> with_axes_of_matlab(const std::vector<Hdf5Entry>& entries,
                                            std::vector<NamedArray> arrays, bool samples_last) {
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::vector<std::int64_t>& extents = arrays[i].extents;
    const std::string& type = entries[i].matlab_class;
    if (type == "char" || type == "cell" || type == "struct" || type == "table")
      arrays[i].excluded = "holds no numbers";
    if (type.empty() || extents.size() < 2) continue;
    std::ranges::reverse(extents);
    const bool is_vector = extents.size() == 2 && (extents[0] == 1 || extents[1] == 1);
    if (is_vector)
      extents = {extents[0] * extents[1]};
    else if (samples_last)
      std::rotate(extents.begin(), extents.end() - 1, extents.end());
  }
  return arrays;
}

/// The reader puts axes in order; samples are the first axis, or the last one.
DataGuess guess_axes_of_matlab(const DataQuestion& question, const std::vector<Hdf5Entry>& entries,
                               const std::vector<NamedArray>& arrays) {
  const std::string what = "a MATLAB file of version 7.3";
  try {
    return guess_arrays(question, with_axes_of_matlab(entries, arrays, false), what);
  } catch (const Error& error) {
    try {
      DataGuess guess = guess_arrays(question, with_axes_of_matlab(entries, arrays, true), what);
      guess.common.push_back({"sample_axis", "last", "samples are the last axis in MATLAB"});
      return guess;
    } catch (const Error&) {
      throw error;
    }
  }
}

}  // namespace

DataGuess guess_hdf5(const DataQuestion& question) {
  const std::vector<NamedArray> arrays = arrays_of(question.place);
  if (question.features.empty() || std::ranges::any_of(arrays, [&](const NamedArray& array) {
        return array.name == question.features && array.kind == NamedArray::Kind::table;
      }))
    if (const NamedArray* const table = only_table(arrays)) return guess_columns(question, *table);
  return guess_arrays(question, arrays,
                      ending_of(question.place) == ".nc" ? "a netCDF file" : "an HDF5 file");
}

DataGuess guess_matlab(const DataQuestion& question) {
  const std::vector<Hdf5Entry> entries = hdf5_contents(question.place);
  const std::vector<NamedArray> arrays = arrays_of(question.place);
  const bool of_matlab =
      std::ranges::any_of(entries, [](const Hdf5Entry& e) { return !e.matlab_class.empty(); });
  const bool orders_axes = std::ranges::any_of(
      find_reader("hdf5").table, [](const ParamSpec& option) { return option.name == "sample_axis"; });
  if (of_matlab && orders_axes) return guess_axes_of_matlab(question, entries, arrays);
  // Of 3 x 32 x 32 x N in MATLAB the samples are the first axis of the file; a column of labels is one row.
  const bool in_rows = std::ranges::any_of(arrays, [](const NamedArray& array) {
    return array.extents.size() == 2 && array.extents[0] == 1 && array.extents[1] > 1;
  });
  if (in_rows) fail_reversed(question, arrays);
  return guess_arrays(question, arrays, "a MATLAB file of version 7.3, as HDF5 has its axes");
}

}  // namespace lockstep

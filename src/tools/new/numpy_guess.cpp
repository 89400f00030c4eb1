// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which arrays of a .npz file, or which .npy files of a folder, are features and labels. What an array holds
// its header says; whether it can be read, the reader decides later.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <regex>

#include "config/yaml_node.h"
#include "core/error.h"
#include "data/left_over_names.h"
#include "data/npy_header.h"
#include "data/reader_dataset.h"
#include "data/reader_table.h"
#include "data/readers/zip_directory.h"
#include "tools/new/array_guess.h"
#include "tools/new/data_guess.h"
#include "tools/new/table_contents.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;
using Kind = NamedArray::Kind;

/// What the header says, also of arrays that read_npy_header() refuses: texts, objects, other orders.
NamedArray look_at_header(const std::string& name, ByteSource& source) {
  NamedArray array{.name = name};
  std::string head(1024, '\0');
  head.resize(source.read_some(0, head.data(), head.size()));
  std::smatch found;
  static const std::regex descr("'descr': *'[<>|=]?([a-zA-Z])"), shape("'shape': *\\(([0-9, ]*)\\)");
  if (std::regex_search(head, found, descr)) {
    const char code = found[1].str()[0];
    array.kind = code == 'f'                                 ? Kind::real
                 : code == 'i' || code == 'u' || code == 'b' ? Kind::whole
                 : code == 'U' || code == 'S'                ? Kind::text
                                                             : Kind::other;
  }
  if (array.kind == Kind::other) array.excluded = "holds neither numbers nor texts";
  if (!std::regex_search(head, found, shape)) return array;
  const std::string extents = found[1];
  for (std::size_t at = 0; at < extents.size();) {
    std::int64_t extent = 0;
    const auto [end, error] = std::from_chars(extents.data() + at, extents.data() + extents.size(), extent);
    if (error == std::errc()) array.extents.push_back(extent);
    at = std::max(at + 1, static_cast<std::size_t>(end - extents.data()));
  }
  return array;
}

/// Of an array with one axis that the reader reads as `options` say.
bool counts(const std::string& options) {
  constexpr std::int64_t kMost = 10'000;
  try {
    const Params params(parse_yaml(options, "lockstep new"), find_reader("npy").table, "reader npy");
    const auto data = open_dataset("npy", params, "");
    const std::int64_t rows = std::min(kMost, data->size());
    std::vector<float> value(static_cast<std::size_t>(data->feature_shape().num_elements()));
    std::vector<float> scratch(static_cast<std::size_t>(data->scratch_values()));
    float before = 0;
    for (std::int64_t i = 0; i < rows; ++i) {
      data->gather_features({&i, 1}, {}, value.data(), scratch.data());
      if (i > 0 && value[0] != before + 1) return false;
      before = value[0];
    }
    return rows > 2;
  } catch (const Error&) {
    return false;  // the reader says why, where it is chosen
  }
}

DataGuess guess_npz(const DataQuestion& question) {
  const ZipDirectory zip(file_bytes(question.place));
  std::vector<NamedArray> arrays;
  for (const std::string_view member : zip.names()) {
    std::string name(member);
    if (!name.ends_with(".npy") || is_left_over(name)) continue;
    name.resize(name.size() - 4);
    NamedArray array{.name = name};
    try {
      array = look_at_header(name, *zip.open(member));
    } catch (const Error&) {
      array.excluded = "cannot be opened";
    }
    array.counts_rows = [&question, name] {
      return counts(fmt::format("path: {}\nfeatures: {}\n", yaml_quoted(question.place), yaml_quoted(name)));
    };
    arrays.push_back(std::move(array));
  }
  ChosenArrays chosen = choose_arrays(arrays, question, "array");
  DataGuess guess{"npy",
                  fmt::format("arrays of NumPy: {} and {}", chosen.features, chosen.labels),
                  {{"path", yaml_quoted(question.path)}}};
  guess.predicts = chosen.labels;
  guess.notes = std::move(chosen.notes);
  guess.assumed = std::move(chosen.assumed);
  const auto named = [](const std::string& features, const std::string& labels) {
    return std::vector<Setting>{{"features", quoted_name(features)}, {"labels", quoted_name(labels)}};
  };
  guess.has_eval = !chosen.eval_features.empty();
  if (guess.has_eval) {
    guess.train = named(chosen.features, chosen.labels);
    guess.eval = named(chosen.eval_features, chosen.eval_labels);
  } else {
    for (Setting& setting : named(chosen.features, chosen.labels)) guess.common.push_back(std::move(setting));
  }
  return guess;
}

DataGuess guess_npy_files(DataQuestion question, const std::string& folder, const std::string& folder_place) {
  std::vector<NamedArray> arrays;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_place.empty() ? "." : folder_place)) {
    const fs::path& path = entry.path();
    if (is_left_over(path.filename().string()) || path.extension() != ".npy" || !entry.is_regular_file())
      continue;
    NamedArray array = look_at_header(path.stem().string(), *file_bytes(path.string()));
    array.counts_rows = [path] { return counts(fmt::format("features: {}\n", yaml_quoted(path.string()))); };
    arrays.push_back(std::move(array));
  }
  std::ranges::sort(arrays, {}, &NamedArray::name);
  for (std::string* const named : {&question.features, &question.labels})
    if (named->ends_with(".npy")) *named = fs::path(*named).stem().string();
  ChosenArrays chosen = choose_arrays(arrays, question, "file");
  const auto files = [&](const std::string& features, const std::string& labels) {
    const auto path = [&](const std::string& name) {
      return yaml_quoted((fs::path(folder) / (name + ".npy")).string());
    };
    return std::vector<Setting>{{"features", path(features)}, {"labels", path(labels)}};
  };
  DataGuess guess{
      "npy", fmt::format("arrays of NumPy: {}.npy and {}.npy", chosen.features, chosen.labels), {}};
  guess.predicts = chosen.labels;
  guess.notes = std::move(chosen.notes);
  guess.assumed = std::move(chosen.assumed);
  guess.has_eval = !chosen.eval_features.empty();
  if (guess.has_eval) {
    guess.train = files(chosen.features, chosen.labels);
    guess.eval = files(chosen.eval_features, chosen.eval_labels);
  } else {
    guess.common = files(chosen.features, chosen.labels);
  }
  return guess;
}

}  // namespace

DataGuess guess_numpy(const DataQuestion& question) {
  const fs::path path(question.path), place(question.place);
  if (ending_of(question.place) == ".npz") return guess_npz(question);
  if (fs::is_directory(place)) return guess_npy_files(question, question.path, question.place);
  DataQuestion named = question;
  const std::string name = place.stem().string();
  const auto set = set_of(name);
  if (named.features.empty() && !label_rank(set ? set->rest : name, true)) named.features = name;
  return guess_npy_files(named, path.parent_path().string(), place.parent_path().string());
}

}  // namespace lockstep

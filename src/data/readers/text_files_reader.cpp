// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Whole files as texts: a sample is a file, plain or gzip, and its class is the folder in which it lies. The
// vocabulary and the classes are those of the training set, also for the evaluation set.
#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "data/data_files.h"
#include "data/left_over_names.h"
#include "data/reader_dataset.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/text_options.h"
#include "data/token_rows.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

enum class Labels { folder, none };
struct Options {
  std::vector<std::string> path;
  Labels labels{};
  std::optional<std::vector<std::string>> classes;
  std::optional<std::string> extension;
  RowOptions rows;
};
constexpr std::array kOptions = with_text_options(std::array{
    option<&Options::path>(
        "path", kRequired, {},
        "a folder with a folder of files for each class, or files: a list or a pattern (mails/*.txt); "
        "relative to the config file's folder",
        Change::place),
    option<&Options::labels>(
        "labels", "folder", one_of("folder|none"),
        "folder: the class of a file is the name of its folder; none: files without labels"),
    option<&Options::classes>(
        "classes", "null", {},
        "folders of the classes that are read, in the order of the class numbers; null: those of the "
        "training set, sorted by their bytes"),
    option<&Options::extension>(
        "extension", "null", {},
        "read only files whose names end with it (txt; also txt.gz), in folders; null: all but names "
        "that begin with a dot"),
    max_length_option<&Options::rows>(), truncate_option<&Options::rows>(),
    padding_token_option<&Options::rows>()});

struct TextFile {
  std::string path, class_name;
};

bool is_folder(const std::string& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown);
}

std::string parent_name(const std::string& path) {
  std::error_code failed;
  return fs::absolute(path, failed).lexically_normal().parent_path().filename().string();
}

/// The files in a folder and the folders in it, sorted by the bytes of their paths. Without `class_name`, a
/// file's class is the folder in `folder` in which it lies.
void add_folder(const std::string& folder, const Options& options, const std::string* class_name,
                std::vector<TextFile>& to) {
  std::vector<std::string> paths;
  std::error_code failed;
  const std::string ending = options.extension ? "." + *options.extension : "";
  const auto wanted = [&](const std::string& name) {
    return !is_left_over(name) &&
           (ending.empty() || name.ends_with(ending) || name.ends_with(ending + ".gz"));
  };
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code unknown;
    if (is_left_over(at->path().filename().string()) && at->is_directory(unknown))
      at.disable_recursion_pending();
    else if (!at->is_directory(unknown) && wanted(at->path().filename().string()))
      paths.push_back(at->path().string());
  }
  if (failed)
    throw Error(ErrorKind::data, fmt::format("the folder cannot be read: {}", failed.message()), folder,
                "Check the path and the folder's permissions.");
  std::ranges::sort(paths);
  for (std::string& path : paths) {
    const std::string below = fs::path(path).lexically_relative(folder).string();
    const auto slash = below.find('/');
    const std::string name = class_name != nullptr        ? *class_name
                             : slash != std::string::npos ? below.substr(0, slash)
                                                          : parent_name(path);
    to.push_back({std::move(path), name});
  }
}

/// A folder of folders of classes.
void add_classes(const std::string& folder, const Options& options, std::vector<TextFile>& to) {
  std::vector<std::string> names;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    std::error_code unknown;
    if (at->is_directory(unknown) && !is_left_over(name)) names.push_back(name);
  }
  if (failed)
    throw Error(ErrorKind::data, fmt::format("the folder cannot be read: {}", failed.message()), folder,
                "Check the path and the folder's permissions.");
  std::ranges::sort(names);
  for (const std::string& name : names) {
    if (options.classes && !std::ranges::count(*options.classes, name)) continue;
    add_folder(folder + "/" + name, options, &name, to);
  }
}

std::vector<TextFile> listed(const Params& params, const std::string& base_directory) {
  const auto options = params.as<Options>();
  const bool labels = options.labels == Labels::folder;
  if (options.classes && !labels)
    throw params.error(option_name<&Options::classes>(params), "labels: none reads no classes",
                       "Leave out one of both.");
  std::vector<TextFile> files;
  const std::vector<std::string> paths = files_and_folders(options.path, base_directory);
  for (const std::string& path : paths) {
    if (!is_folder(path))
      files.push_back({path, parent_name(path)});
    else if (labels)
      add_classes(path, options, files);
    else
      add_folder(path, options, nullptr, files);
  }
  if (files.empty())
    throw Error(
        ErrorKind::data, "holds no files of texts", paths.empty() ? std::string() : name_of_files(paths),
        labels ? "Files lie in folders of classes; without classes write labels: none." : "Check the path.");
  return files;
}

struct VocabularyAndClasses {
  std::shared_ptr<const TextInfo> text;
  std::vector<std::string> class_names;
};

/// Those of the training set.
VocabularyAndClasses learned(const Params& params, const std::string& base_directory,
                             const std::vector<TextFile>& files) {
  const auto options = params.as<Options>();
  const auto tokenizer = params.as<Tokenizer>();
  const auto count = [&](WordCounts& counts) {
    for (const TextFile& file : files) count_tokens(tokenizer, whole_text(file.path, true), counts);
  };
  TextInfo info = text_option(params, base_directory, name_of_files(options.path), true, count);
  VocabularyAndClasses from{std::make_shared<TextInfo>(std::move(info)), {}};
  if (options.labels == Labels::none) return from;
  std::set<std::string> names;
  for (const TextFile& file : files) names.insert(file.class_name);
  from.class_names.assign(names.begin(), names.end());
  if (options.classes) from.class_names = *options.classes;
  return from;
}

DatasetParts dataset(const Params& params, std::vector<TextFile> files, const std::optional<RowRange>& rows,
                     VocabularyAndClasses from, bool labels) {
  std::vector<std::string> paths;
  for (const TextFile& file : files) paths.push_back(file.path);
  DatasetParts parts;
  parts.source = name_of_files(paths);
  const RowRange range = checked_rows(rows, std::ssize(files), parts.source);
  TokenRows tokens(params.as<Options>().rows);
  parts.size = range.last - range.first;
  parts.feature_shape = {tokens.length()};
  parts.sequence = row_form(*from.text);
  parts.num_label_columns = labels ? 1 : 0;
  const bool adds_end = from.text->tokenizer.unit != TokenUnit::bpe;
  for (std::int64_t i = range.first; i < range.last; ++i) {
    const TextFile& file = files[static_cast<std::size_t>(i)];
    tokens.add(whole_text(file.path, adds_end), *from.text);
    if (!labels) continue;
    const auto found = std::ranges::find(from.class_names, file.class_name);
    if (found == from.class_names.end())
      throw Error(ErrorKind::data, fmt::format("its folder '{}' is none of the classes", file.class_name),
                  file.path, "The classes are those of the training set, or of the option classes.");
    parts.label_indices.push_back(static_cast<std::int32_t>(found - from.class_names.begin()));
  }
  set_ids(parts, tokens.ids(), from.text->vocabulary.size());
  parts.text = std::move(from.text);
  parts.class_names = std::move(from.class_names);
  parts.name = [paths = std::move(paths), first = range.first](std::int64_t sample) {
    return paths[static_cast<std::size_t>(first + sample)];
  };
  return parts;
}

DatasetParts make_evaluation(const Params& params, const Params& train, const std::string& base_directory) {
  return dataset(params, listed(params, base_directory), rows_option(params),
                 learned(train, base_directory, listed(train, base_directory)),
                 params.as<Options>().labels == Labels::folder);
}

DatasetParts make_as_trained(const Params& params, const ReaderDataset& trained,
                             const std::string& base_directory) {
  return dataset(params, listed(params, base_directory), rows_option(params),
                 {trained.shared_text(), trained.class_names()},
                 params.as<Options>().labels == Labels::folder);
}

DatasetParts make(const Params& params, const std::string& base_directory) {
  return make_evaluation(params, params, base_directory);
}

/// There are labels if the first file lies in the folder of a class.
DatasetParts make_input(const Params& params, const InputRequest& request) {
  LOCKSTEP_CHECK(request.text != nullptr);
  std::vector<TextFile> files;
  for (const std::string& path : request.paths)
    if (is_folder(path))
      add_folder(path, params.as<Options>(), nullptr, files);
    else
      files.push_back({path, parent_name(path)});
  check_feature_shape(Shape{params.as<Options>().rows.max_length}, request.feature_shape,
                      name_of_files(request.paths));
  if (files.empty())
    throw Error(ErrorKind::data, "holds no files of texts", name_of_files(request.paths), "Check the path.");
  const bool labels = request.labels && std::ranges::count(request.class_names, files.front().class_name) > 0;
  return dataset(params, std::move(files), std::nullopt,
                 {std::make_shared<TextInfo>(*request.text), request.class_names}, labels);
}

/// All that may be read.
std::vector<std::string> files(const Params& params, const std::string& base_directory) {
  std::vector<std::string> paths;
  for (const TextFile& file : listed(params, base_directory)) paths.push_back(file.path);
  return paths;
}

}  // namespace

extern const ReaderEntry kTextFilesReader = {
    .name = "text_files",
    .help = "folders of texts, a file per sample, a folder per class",
    .table = kOptions,
    .make = make,
    .make_input = make_input,
    .reads_folders = true,
    .files = files,
    .make_evaluation = make_evaluation,
    .make_as_trained = make_as_trained};

}  // namespace lockstep

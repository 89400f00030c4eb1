// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a folder holds: IDX files, folders of classes, folders or files of sets that are apart.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/name_list.h"
#include "data/image_decode.h"
#include "data/left_over_names.h"
#include "io/byte_source.h"
#include "tools/new/data_guess.h"
#include "tools/new/separate_labels.h"
#include "tools/new/set_files.h"
#include "tools/new/table_contents.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

/// MNIST's names: train-images-idx3-ubyte, with or without .gz.
DataGuess guess_idx(const DataQuestion& question, const std::vector<std::string>& names) {
  DataGuess guess{"idx", "IDX files, as MNIST's", {{"folder", yaml_quoted(question.path)}}};
  std::vector<std::vector<Setting>> sets;
  for (const char* const begin : {"train", "t10k"}) {
    const std::string images = fmt::format("{}-images-idx3-ubyte", begin),
                      labels = fmt::format("{}-labels-idx1-ubyte", begin);
    const auto is_there = [&](const std::string& name) {
      return std::ranges::count(names, name) + std::ranges::count(names, name + ".gz") > 0;
    };
    if (is_there(images) && is_there(labels)) sets.push_back({{"images", images}, {"labels", labels}});
  }
  if (sets.empty())
    unknown_data(question.place,
                 "the folder has IDX files, but no pair of images and labels with MNIST's names");
  if (sets.size() == 2) {
    guess.train = sets[0];
    guess.eval = sets[1];
    guess.has_eval = true;
  } else {
    guess.common.insert(guess.common.end(), sets[0].begin(), sets[0].end());
  }
  return guess;
}

/// What the folders of classes hold, as the readers see it.
struct ClassFolders {
  std::set<fs::path> images;
  bool has_texts = false;
};

void look_into(const fs::path& folder, ClassFolders& seen, std::size_t& looked) {
  constexpr std::size_t kMost = 10'000;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (is_left_over(entry.path().filename().string())) continue;
    if (++looked > kMost) return;
    std::error_code unknown;
    if (entry.is_directory(unknown)) {
      look_into(entry.path(), seen, looked);
    } else if (entry.is_regular_file(unknown)) {
      seen.has_texts = seen.has_texts || ending_of(entry.path().string()) == ".txt";
      if (is_image_name(entry.path().string())) seen.images.insert(entry.path());
    }
  }
}

/// The first one that can be read. Throws what the first of all throws, if it is none of some.
void guess_first_image(DataGuess& guess, const std::set<fs::path>& images) {
  constexpr std::size_t kTries = 20;
  std::size_t tries = 0;
  std::optional<Error> failure;
  for (const fs::path& image : images) {
    if (++tries > kTries) break;
    try {
      const auto source = file_bytes(image.string());
      std::vector<std::byte> file(static_cast<std::size_t>(exact_bytes(*source)));
      source->read(0, file.data(), file.size());
      guess_image(guess, file, image.string());
      return;
    } catch (const Error& error) {
      if (!failure) failure = error;
    }
  }
  throw Error(*failure);
}

/// aclImdb/train has a folder of texts without a class.
void leave_unlabelled_out(DataGuess& guess, const std::vector<std::string>& folders) {
  std::vector<std::string> classes, left_out;
  for (const std::string& folder : folders) {
    const std::string name = lower_case(folder);
    const bool unlabelled = name == "unsup" || name == "unsupervised" || name.starts_with("unlabel");
    (unlabelled ? left_out : classes).push_back(folder);
  }
  if (left_out.empty() || classes.size() < 2) return;
  guess.notes.push_back(fmt::format("left out: folder {}, which is no class", name_list(left_out)));
  for (std::string& name : classes) name = quoted_name(name);
  guess.common.push_back({"classes", fmt::format("[{}]", fmt::join(classes, ", "))});
}

DataGuess guess_classes(const DataQuestion& question, const std::vector<std::string>& folders) {
  ClassFolders seen;
  std::size_t looked = 0;
  for (const std::string& folder : folders) look_into(fs::path(question.place) / folder, seen, looked);
  const std::size_t classes = folders.size();
  DataGuess guess{.format = "images",
                  .what = fmt::format("a folder with {} folders of images", classes),
                  .common = {{"path", yaml_quoted(question.path)}}};
  guess.knows_labels = true;
  leave_unlabelled_out(guess, folders);
  if (!seen.images.empty()) {
    guess_first_image(guess, seen.images);
    return guess;
  }
  if (!seen.has_texts)
    unknown_data(question.place, "the folders hold neither .jpg or .png images nor .txt texts");
  guess.format = "text_files";
  guess.what = fmt::format("a folder with {} folders of texts", classes);
  guess.common.push_back({"extension", "txt"});
  guess.common.push_back({"lower_case", "true"});
  guess.common.push_back({"max_vocabulary", "10000", "rarer words become unknown"});
  guess.common.push_back({"max_length", "100", "words of a text that are read"});
  guess.is_text = true;
  return guess;
}

/// The folder below that is for a set: train, val, test.
std::optional<std::string> set_folder(const std::vector<std::string>& folders, SetKind wanted) {
  for (const std::string& folder : folders)
    if (const auto set = set_of(folder); set && set->set == wanted && set->rest.empty()) return folder;
  return std::nullopt;
}

DataQuestion question_of(const DataQuestion& question, const std::string& name) {
  DataQuestion inner = question;
  inner.path = (fs::path(question.path) / name).string();
  inner.place = (fs::path(question.place) / name).string();
  return inner;
}

/// Folders of sets: training is on one of them.
DataGuess guess_sets(const DataQuestion& question, const std::vector<std::string>& folders,
                     const std::string& train) {
  const DataQuestion inner = question_of(question, train);
  DataGuess guess = guess_folder(inner);
  for (const SetKind set : {SetKind::validation, SetKind::test}) {
    const auto other = set_folder(folders, set);
    if (!other || (guess.has_eval && guess.eval.empty())) continue;
    if (guess.has_eval) {
      guess.notes.push_back(
          fmt::format("folder {} is not used: evaluations are of the validation set", *other));
      continue;
    }
    separate_sets(guess, inner.path, (fs::path(question.path) / *other).string());
    guess.notes.push_back(
        fmt::format("training is on folder {}, evaluations are of folder {}", train, *other));
  }
  return guess;
}

/// Of files that are tables or texts by their contents alone.
bool may_be_any_text(const std::string& name) {
  const std::string ending = ending_of(name);
  return ending == ".txt" || ending == ".data" || ending == ".dat";
}

bool has_known_ending(const std::string& name) {
  for (const char* const known : {".csv", ".tsv", ".tab", ".h5", ".hdf5", ".nc", ".npz", ".jsonl", ".ndjson",
                                  ".tfrecord", ".tfrecords", ".tar", ".mat"})
    if (ending_of(name) == known) return true;
  return false;
}

DataGuess guess_files(const DataQuestion& question, const FolderContents& contents) {
  std::vector<std::string> known;
  for (const std::string& file : contents.files)
    if (has_known_ending(file)) known.push_back(file);
  const auto arrays =
      std::ranges::count_if(contents.files, [](const std::string& file) { return file.ends_with(".npy"); });
  if (arrays > 1 && known.empty()) return guess_numpy(question);
  if (const std::string train = train_file(known); !train.empty())
    return guess_data(question_of(question, train));
  if (known.size() == 1) return guess_data(question_of(question, known[0]));
  if (known.empty()) {
    std::vector<std::string> texts;
    std::ranges::copy_if(contents.files, std::back_inserter(texts), may_be_any_text);
    if (const std::string train = train_file(texts); !train.empty())
      return guess_data(question_of(question, train));
  }
  if (known.size() > 1)
    throw Error(
        ErrorKind::data, fmt::format("the folder has several files of data: {}", name_list(known)),
        question.place,
        "Give one of them; files that are one set are listed under data.path: docs/data.md#several-files.");
  unknown_data(question.place, "the folder has no folders of classes");
}

}  // namespace

DataGuess guess_folder(const DataQuestion& question) {
  const FolderContents contents = contents_of(question.place);
  if (std::ranges::any_of(contents.files,
                          [](const std::string& name) { return name.find("-idx") != std::string::npos; }))
    return guess_idx(question, contents.files);
  if (const auto train = set_folder(contents.folders, SetKind::train))
    return guess_sets(question, contents.folders, *train);
  if (contents.folders.size() < 2)
    if (const std::string file = features_file(question.place, contents.files); !file.empty())
      return guess_data(question_of(question, file));
  // What an archive has in a folder of its own.
  if (contents.folders.size() == 1 && std::ranges::none_of(contents.files, has_known_ending))
    return guess_folder(question_of(question, contents.folders[0]));
  if (contents.folders.size() < 2) return guess_files(question, contents);
  return guess_classes(question, contents.folders);
}

}  // namespace lockstep

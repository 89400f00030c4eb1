// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/set_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "data/left_over_names.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

/// Arrays that are called train_x in one file and test_x in the other.
void separate_names(DataGuess& guess, const DataQuestion& eval_file) {
  DataGuess other;
  try {
    other = guess_data(eval_file);
  } catch (const Error&) {
    return;  // it is opened as the training file is, and the error says what it lacks
  }
  for (const char* const key : {"features", "labels"}) {
    const auto own = std::ranges::find(guess.common, key, &Setting::key);
    const auto others = std::ranges::find(other.common, key, &Setting::key);
    if (own == guess.common.end() || others == other.common.end() || own->value == others->value) continue;
    const auto own_set = set_of(own->value), other_set = set_of(others->value);
    if (!own_set || !other_set || own_set->rest != other_set->rest) continue;
    guess.train.push_back(*own);
    guess.eval.push_back(*others);
    guess.common.erase(own);
  }
}

/// "train" and ".csv.gz" of train.csv.gz.
std::pair<std::string, std::string> parts_of(const std::string& name) {
  const auto dot = name.find('.');
  return dot == std::string::npos ? std::pair(name, std::string())
                                  : std::pair(name.substr(0, dot), name.substr(dot));
}

}  // namespace

FolderContents contents_of(const std::string& folder) {
  FolderContents contents;
  std::error_code failed;
  fs::directory_iterator at(folder.empty() ? "." : folder, failed);
  for (; !failed && at != fs::directory_iterator{}; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    std::error_code unknown;
    if (is_left_over(name)) continue;
    (at->is_directory(unknown) ? contents.folders : contents.files).push_back(name);
  }
  if (failed)
    throw Error(ErrorKind::data, fmt::format("the folder cannot be read: {}", failed.message()), folder,
                "Check its permissions.");
  std::ranges::sort(contents.folders);
  std::ranges::sort(contents.files);
  return contents;
}

std::string train_file(const std::vector<std::string>& files) {
  std::string found;
  for (const std::string& file : files) {
    const auto set = set_of(parts_of(file).first);
    if (!set || set->set != SetKind::train) continue;
    if (!found.empty()) return "";
    found = file;
  }
  return found;
}

void separate_sets(DataGuess& guess, const std::string& from, const std::string& to) {
  std::vector<Setting> common;
  for (Setting& setting : guess.common) {
    const auto at = setting.value.find(from);
    if (at == std::string::npos) {
      common.push_back(std::move(setting));
      continue;
    }
    Setting other = setting;
    other.value.replace(at, from.size(), to);
    guess.train.push_back(std::move(setting));
    guess.eval.push_back(std::move(other));
  }
  guess.common = std::move(common);
  guess.has_eval = guess.may_lack_eval = true;
}

void add_eval_file(DataGuess& guess, const DataQuestion& question) {
  const fs::path place(question.place);
  const auto [stem, ending] = parts_of(place.filename().string());
  const auto set = set_of(stem);
  if (!set || set->set != SetKind::train || guess.has_eval) return;
  for (const SetKind wanted : {SetKind::validation, SetKind::test})
    for (const std::string& file : contents_of(place.parent_path().string()).files) {
      const auto [other_stem, other_ending] = parts_of(file);
      const auto other = set_of(other_stem);
      if (other_ending != ending || !other || other->set != wanted || other->rest != set->rest) continue;
      if (guess.is_continuous_text || guess.format == "text_tsv") {
        guess.assumed.push_back(
            fmt::format("{} is not used: its vocabulary would be another one; a part of {} is for evaluation",
                        file, place.filename().string()));
        return;
      }
      if (guess.has_eval) {
        guess.notes.push_back(fmt::format("{} is not used: evaluations are of the validation set", file));
        return;
      }
      DataQuestion of_file{.path = (fs::path(question.path).parent_path() / file).string(),
                           .place = (place.parent_path() / file).string()};
      separate_sets(guess, question.path, of_file.path);
      if (guess.format == "hdf5" || guess.format == "npy") separate_names(guess, of_file);
      guess.notes.push_back(fmt::format("evaluations are of {}, which lies next to it", file));
    }
}

}  // namespace lockstep

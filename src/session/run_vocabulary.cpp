// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/run_vocabulary.h"

#include <filesystem>
#include <sstream>

#include "core/error.h"
#include "data/byte_pair_file.h"
#include "data/reader_dataset.h"
#include "data/table_info.h"
#include "data/text_info.h"
#include "io/atomic_file.h"

namespace lockstep {

namespace {

constexpr const char *kVocabulary = "vocabulary.txt", *kTokenizer = "tokenizer.json";

const char* vocabulary_name(const TextInfo& text) {
  return text.byte_pairs != nullptr ? kTokenizer : kVocabulary;
}

std::string vocabulary_text(const TextInfo& text) {
  return text.byte_pairs != nullptr ? tokenizer_json(text.byte_pairs->table()) : text.vocabulary.file_text();
}

std::string classes_path(const std::string& run_dir) { return run_dir + "/classes.txt"; }

std::string categories_path(const std::string& run_dir) { return run_dir + "/categories.txt"; }

/// Of all inputs; empty if there are none.
std::string categories_text(const Dataset& data) {
  std::string text;
  for (const DatasetPart& part : data.parts())
    if (part.data->table() != nullptr) text += part.data->table()->categories_text();
  return text;
}

std::string classes_text(const std::vector<std::string>& names) {
  std::string lines;
  for (const std::string& name : names) lines += escaped_word(name) + "\n";
  return lines;
}

void check_same(const std::string& path, const std::string& of_data, const char* what, const char* advice) {
  std::error_code code;
  if (std::filesystem::symlink_status(path, code).type() == std::filesystem::file_type::not_found) return;
  const std::string kept = read_whole_file(path, ErrorKind::data);
  if (kept == of_data) return;
  std::istringstream before(kept), now(of_data);
  std::string was, is;
  std::int64_t line = 0;
  do {
    ++line;
    if (!std::getline(before, was)) was = "nothing";
    if (!std::getline(now, is)) is = "nothing";
  } while (was == is);
  throw Error(
      ErrorKind::data,
      fmt::format("the {} of the data is not that of the run: '{}' where the run has '{}'", what, is, was),
      fmt::format("{}, line {}", path, line), advice);
}

}  // namespace

Vocabulary read_vocabulary(const std::string& path) {
  if (path.ends_with(".json")) return Vocabulary::of_tokens(read_byte_pairs(path, {}).table().tokens);
  return Vocabulary::of_run(path);
}

std::optional<Vocabulary> run_vocabulary(const std::string& run_dir) {
  std::error_code code;
  for (const char* const name : {kVocabulary, kTokenizer})
    if (const std::string path = run_dir + "/" + name; std::filesystem::exists(path, code))
      return read_vocabulary(path);
  return std::nullopt;
}

void add_vocabulary(const Dataset& data, KeptFiles& kept) {
  if (const TextInfo* text = data.text(); text != nullptr)
    kept.emplace(vocabulary_name(*text), vocabulary_text(*text));
  if (!data.class_names().empty()) kept.emplace("classes.txt", classes_text(data.class_names()));
  if (std::string categories = categories_text(data); !categories.empty())
    kept.emplace("categories.txt", std::move(categories));
}

void check_vocabulary(const std::string& run_dir, const Dataset& data) {
  if (const TextInfo* text = data.text(); text != nullptr)
    check_same(run_dir + "/" + vocabulary_name(*text), vocabulary_text(*text), "vocabulary",
               "Use the text and the tokenizer's options that the run began with, or begin a new run.");
  if (!data.class_names().empty())
    check_same(classes_path(run_dir), classes_text(data.class_names()), "list of classes",
               "Use the classes that the run began with, or begin a new run.");
  if (const std::string categories = categories_text(data); !categories.empty())
    check_same(categories_path(run_dir), categories, "list of categories",
               "Use the categories that the run began with, or begin a new run.");
}

}  // namespace lockstep

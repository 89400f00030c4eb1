// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/data_guess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/scalar.h"
#include "data/image_decode.h"
#include "data/left_over_names.h"
#include "data/tar_index.h"
#include "io/byte_source.h"
#include "io/input_file.h"
#include "tools/new/set_files.h"
#include "tools/new/table_contents.h"
#include "tools/new/usual_names.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostNames = 10'000;  ///< of classes in an archive

bool is_any_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words, [&](const char* other) { return word == other; });
}

DataGuess guess_archive(const DataQuestion& question) {
  DataGuess guess{"webdataset", "a tar archive of images", {{"path", yaml_quoted(question.path)}}};
  const auto archive = file_bytes(question.place);
  TarMember first;
  std::set<std::string> classes;
  read_tar(*archive, [&](const TarMember& member) {
    if (is_left_over(fs::path(member.name).filename().string())) return;
    if (first.name.empty() && is_image_name(member.name)) first = member;
    constexpr std::int64_t kLongestName = 200;
    if (!member.name.ends_with(".cls") || member.size > kLongestName || classes.size() > kMostNames) return;
    std::string text(static_cast<std::size_t>(member.size), '\0');
    archive->read(member.offset, text.data(), text.size());
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
      text.pop_back();
    classes.insert(text);
  });
  if (first.name.empty()) unknown_data(question.place, "the archive has no .jpg or .png images");
  std::vector<std::byte> file(static_cast<std::size_t>(first.size));
  archive->read(first.offset, file.data(), file.size());
  guess_image(guess, file, fmt::format("{}: {}", question.place, first.name));
  const bool are_names =
      std::ranges::any_of(classes, [](const std::string& text) { return !parse_integer(text).has_value(); });
  if (!are_names || classes.size() > kMostNames) return guess;
  std::vector<std::string> names;
  for (const std::string& name : classes) names.push_back(yaml_quoted(name));
  guess.common.push_back({"classes", fmt::format("[{}]", fmt::join(names, ", ")), "as the labels call them"});
  return guess;
}

DataGuess guess_text(const DataQuestion& question) {
  DataGuess guess{
      "text_windows", "a text, for a model of its characters", {{"path", yaml_quoted(question.path)}}};
  guess.common.push_back({"tokens", "characters", "or words"});
  guess.common.push_back({"length", "64", "characters of a window; the label of each is the next one"});
  guess.train = {{"part", "[0, 0.9]"}};
  guess.eval = {{"part", "[0.9, 1]"}};
  guess.has_eval = guess.is_text = guess.is_continuous_text = true;
  return guess;
}

/// Lines of a .json file that are objects of their own.
bool has_object_per_line(const std::string& place) {
  InputFile file(place);
  LineReader lines(file);
  std::string_view line;
  return lines.next(line) && line.starts_with('{') && line.find('}') != std::string_view::npos;
}

DataGuess guess_file(const DataQuestion& question) {
  check_form(question.place);
  const std::string ending = ending_of(question.place);
  if (is_any_of(ending, {".csv", ".tsv", ".tab"})) return guess_table(question);
  if (is_any_of(ending, {".h5", ".hdf5", ".nc"})) return guess_hdf5(question);
  if (ending == ".mat") return guess_matlab(question);
  if (is_any_of(ending, {".npz", ".npy"})) return guess_numpy(question);
  if (is_any_of(ending, {".jsonl", ".ndjson"})) return guess_jsonl(question);
  if (ending == ".json" && has_object_per_line(question.place)) return guess_jsonl(question);
  if (is_any_of(ending, {".tfrecord", ".tfrecords"})) return guess_tfrecord(question);
  if (ending == ".tar") return guess_archive(question);
  if (is_any_of(ending, {".txt", ".data", ".dat"})) {
    if (table_delimiter(question.place)) return guess_table(question);
    if (ending == ".txt") return guess_text(question);
  }
  unknown_data(question.place, fmt::format("files that end with '{}' are not known", ending));
}

}  // namespace

std::string ending_of(const std::string& path) {
  const fs::path file(path);
  std::string ending = lower_case(file.extension().string());
  if (is_any_of(ending, {".gz", ".xz", ".bz2", ".zst", ".zip"}))
    ending = lower_case(file.stem().extension().string());
  return ending;
}

bool is_image_name(const std::string& path) { return is_any_of(ending_of(path), {".jpg", ".jpeg", ".png"}); }

void unknown_data(const std::string& path, const std::string& what) {
  throw Error(
      ErrorKind::data, what, path,
      "Known are .csv, .tsv, .h5, .nc, .npz, .npy, .jsonl, .tfrecord, .tar and .txt files, and folders of "
      "IDX "
      "files, of .npy files, of images or of texts by class, also in folders train and test. docs/data.md "
      "describes the readers.");
}

void guess_image(DataGuess& guess, std::span<const std::byte> file, const std::string& place) {
  constexpr std::int64_t kSmall = 96;
  ImageDecoder decoder;
  const ImageView image = decoder.decode(file, 3, true, [&] { return place; }, {});
  if (image.height > kSmall || image.width > kSmall) {
    guess.common.push_back({"size", "64", "images are resized to 64 x 64 pixels"});
    return;
  }
  guess.common.push_back({"size", fmt::format("[{}, {}]", image.height, image.width),
                          "height and width of the first image; others are resized"});
  const std::uint8_t* const end = image.pixels + image.height * image.width * 3;
  bool grey = true;
  for (const std::uint8_t* pixel = image.pixels; pixel < end; pixel += 3)
    grey = grey && pixel[0] == pixel[1] && pixel[1] == pixel[2];
  if (grey) guess.common.push_back({"channels", "1", "grey, as the first image; 3: colours"});
}

DataGuess guess_data(const DataQuestion& question) {
  std::error_code failed;
  const fs::file_status status = fs::status(question.place, failed);
  if (!fs::exists(status))
    throw Error(ErrorKind::data, "does not exist", question.place,
                "Give the path of a file or a folder of data.");
  if (fs::is_directory(status)) return guess_folder(question);
  DataGuess guess = guess_file(question);
  add_eval_file(guess, question);
  return guess;
}

}  // namespace lockstep

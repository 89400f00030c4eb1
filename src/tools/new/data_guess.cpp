// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/data_guess.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>

#include "core/error.h"
#include "data/image_decode.h"
#include "data/tar_index.h"
#include "io/byte_source.h"
#include "io/hdf5_contents.h"
#include "tools/new/table_contents.h"

namespace lockstep {

namespace {

namespace fs = std::filesystem;

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// ".csv" of "a.CSV.gz".
std::string ending_of(const fs::path& path) {
  std::string ending = lower_case(path.extension().string());
  if (ending == ".gz") ending = lower_case(path.stem().extension().string());
  return ending;
}

bool is_any_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words, [&](const char* other) { return word == other; });
}

bool is_image(const fs::path& path) { return is_any_of(ending_of(path), {".jpg", ".jpeg", ".png"}); }

[[noreturn]] void unknown(const std::string& path, const std::string& what) {
  throw Error(
      ErrorKind::data, what, path,
      "Known are .csv, .tsv, .h5, .npz, .jsonl, .tfrecord, .tar and .txt files, and folders of IDX files, of "
      "images or of texts by class. docs/data.md describes the readers.");
}

std::string names_of(const std::vector<Hdf5Entry>& entries) {
  std::vector<std::string> names;
  for (const Hdf5Entry& entry : entries) names.push_back(entry.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// "train/image" with the first part replaced: its counterpart in another group.
std::string in_group(const std::string& name, const std::string& group) {
  const auto slash = name.find('/');
  return slash == std::string::npos ? group + "/" + name : group + name.substr(slash);
}

const Hdf5Entry* find(const std::vector<Hdf5Entry>& entries, const std::string& name) {
  const auto found = std::ranges::find(entries, name, &Hdf5Entry::name);
  return found == entries.end() ? nullptr : &*found;
}

DataGuess guess_hdf5(const DataQuestion& question) {
  const std::vector<Hdf5Entry> entries = hdf5_contents(question.place);
  const Hdf5Entry* features = nullptr;
  const auto bytes = [](const Hdf5Entry& entry) {
    double product = 1;
    for (const std::int64_t extent : entry.extents) product *= static_cast<double>(extent);
    return product;
  };
  for (const Hdf5Entry& entry : entries)
    if (question.features.empty() ? entry.is_number && entry.extents.size() > 1 &&
                                        (features == nullptr || bytes(entry) > bytes(*features))
                                  : entry.name == question.features)
      features = &entry;
  if (features == nullptr)
    throw Error(ErrorKind::data,
                question.features.empty() ? "no dataset has numbers in more than one axis"
                                          : fmt::format("has no dataset '{}'", question.features),
                question.place, fmt::format("Name one with --features. Datasets: {}", names_of(entries)));
  const Hdf5Entry* labels = nullptr;
  const std::string folder = features->name.substr(0, features->name.rfind('/') + 1);
  for (const Hdf5Entry& entry : entries)
    if (question.labels.empty() ? &entry != features && entry.is_number && !entry.extents.empty() &&
                                      entry.extents[0] == features->extents[0] && entry.extents.size() <= 2 &&
                                      entry.name.substr(0, entry.name.rfind('/') + 1) == folder &&
                                      (labels == nullptr || entry.extents.size() < labels->extents.size())
                                : entry.name == question.labels)
      labels = &entry;
  if (labels == nullptr)
    throw Error(ErrorKind::data,
                fmt::format("no dataset has a label for each of the {} rows of {}", features->extents[0],
                            features->name),
                question.place, fmt::format("Name one with --labels. Datasets: {}", names_of(entries)));
  DataGuess guess{
      "hdf5",
      fmt::format("an HDF5 file: {} and {}, {} samples", features->name, labels->name, features->extents[0]),
      {{"path", quoted_yaml(question.path)}}};
  guess.is_measured = !labels->is_whole;
  for (const char* const other : {"test", "val", "valid", "validation", "eval"}) {
    const Hdf5Entry* of_eval = find(entries, in_group(features->name, other));
    const Hdf5Entry* eval_labels = find(entries, in_group(labels->name, other));
    if (!features->name.starts_with("train") || of_eval == nullptr || eval_labels == nullptr) continue;
    guess.train = {{"features", features->name}, {"labels", labels->name}};
    guess.eval = {{"features", of_eval->name}, {"labels", eval_labels->name}};
    guess.has_eval = true;
    return guess;
  }
  guess.common.push_back({"features", features->name});
  guess.common.push_back({"labels", labels->name});
  return guess;
}

/// MNIST's names: train-images-idx3-ubyte, with or without .gz.
DataGuess guess_idx(const DataQuestion& question, const std::set<std::string>& names) {
  DataGuess guess{"idx", "IDX files, as MNIST's", {{"folder", quoted_yaml(question.path)}}};
  std::vector<std::vector<Setting>> sets;
  for (const char* const begin : {"train", "t10k"}) {
    const std::string images = fmt::format("{}-images-idx3-ubyte", begin),
                      labels = fmt::format("{}-labels-idx1-ubyte", begin);
    const auto is_there = [&](const std::string& name) {
      return names.contains(name) || names.contains(name + ".gz");
    };
    if (is_there(images) && is_there(labels)) sets.push_back({{"images", images}, {"labels", labels}});
  }
  if (sets.empty())
    unknown(question.place, "the folder has IDX files, but no pair of images and labels with MNIST's names");
  if (sets.size() == 2) {
    guess.train = sets[0];
    guess.eval = sets[1];
    guess.has_eval = true;
  } else {
    guess.common.insert(guess.common.end(), sets[0].begin(), sets[0].end());
  }
  return guess;
}

/// The size of a sample is that of the first image, if that is small, and so are its channels.
void guess_images(DataGuess& guess, ByteSource& source, std::int64_t offset, std::int64_t bytes,
                  const std::string& place) {
  constexpr std::int64_t kSmall = 96;
  std::vector<std::byte> file(static_cast<std::size_t>(bytes));
  source.read(offset, file.data(), file.size());
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

/// The first one that can be read. Throws what the first of all throws, if it is none of some.
void guess_first_image(DataGuess& guess, const std::set<fs::path>& images) {
  constexpr std::size_t kTries = 20;
  std::size_t tries = 0;
  std::optional<Error> failure;
  for (const fs::path& image : images) {
    if (++tries > kTries) break;
    try {
      const auto file = file_bytes(image.string());
      guess_images(guess, *file, 0, exact_bytes(*file), image.string());
      return;
    } catch (const Error& error) {
      if (!failure) failure = error;
    }
  }
  throw Error(*failure);
}

/// A folder of folders, one per class; or of IDX files.
DataGuess guess_folder(const DataQuestion& question) {
  std::set<std::string> names, endings;
  std::size_t classes = 0, looked = 0;
  std::set<fs::path> images;
  for (const fs::directory_entry& entry : fs::directory_iterator(question.place)) {
    names.insert(entry.path().filename().string());
    if (!entry.is_directory()) continue;
    ++classes;
    for (const fs::directory_entry& file : fs::directory_iterator(entry.path())) {
      if (++looked > 10000) break;
      if (!file.is_regular_file()) continue;
      endings.insert(ending_of(file.path()));
      if (is_image(file.path())) images.insert(file.path());
    }
  }
  if (std::ranges::any_of(names,
                          [](const std::string& name) { return name.find("-idx") != std::string::npos; }))
    return guess_idx(question, names);
  if (classes < 2) unknown(question.place, "the folder has no folders of classes");
  if (!images.empty()) {
    DataGuess guess{"images",
                    fmt::format("a folder with {} folders of images", classes),
                    {{"path", quoted_yaml(question.path)}}};
    guess_first_image(guess, images);
    return guess;
  }
  if (!endings.contains(".txt"))
    unknown(question.place, "the folders hold neither .jpg or .png images nor .txt texts");
  DataGuess guess{"text_files",
                  fmt::format("a folder with {} folders of texts", classes),
                  {{"path", quoted_yaml(question.path)}}};
  guess.common.push_back({"extension", "txt"});
  guess.common.push_back({"lower_case", "true"});
  guess.common.push_back({"max_vocabulary", "10000", "rarer words become unknown"});
  guess.common.push_back({"max_length", "100", "words of a text that are read"});
  guess.is_text = true;
  return guess;
}

DataGuess guess_archive(const DataQuestion& question) {
  DataGuess guess{"webdataset", "a tar archive of images", {{"path", quoted_yaml(question.path)}}};
  const auto archive = file_bytes(question.place);
  TarMember first;
  read_tar(*archive, [&](const TarMember& member) {
    if (first.name.empty() && is_image(member.name)) first = member;
  });
  if (first.name.empty()) unknown(question.place, "the archive has no .jpg or .png images");
  guess_images(guess, *archive, first.offset, first.size, fmt::format("{}: {}", question.place, first.name));
  return guess;
}

/// Readers whose fields have no order: both must be named.
DataGuess with_fields(const DataQuestion& question, const std::string& format, const std::string& what) {
  if (question.features.empty() || question.labels.empty())
    throw Error(ErrorKind::data, fmt::format("{}: the names of features and labels are not known", what),
                question.place, "Give them: --features NAME --labels NAME");
  return {
      format,
      what,
      {{"path", quoted_yaml(question.path)}, {"features", question.features}, {"labels", question.labels}}};
}

DataGuess guess_text(const DataQuestion& question) {
  DataGuess guess{
      "text_windows", "a text, for a model of its characters", {{"path", quoted_yaml(question.path)}}};
  guess.common.push_back({"tokens", "characters", "or words"});
  guess.common.push_back({"length", "64", "characters of a window; the label of each is the next one"});
  guess.train = {{"part", "[0, 0.9]"}};
  guess.eval = {{"part", "[0.9, 1]"}};
  guess.has_eval = guess.is_text = guess.is_continuous_text = true;
  return guess;
}

}  // namespace

DataGuess guess_data(const DataQuestion& question) {
  std::error_code failed;
  const fs::file_status status = fs::status(question.place, failed);
  if (!fs::exists(status))
    throw Error(ErrorKind::data, "does not exist", question.place,
                "Give the path of a file or a folder of data.");
  if (fs::is_directory(status)) return guess_folder(question);
  const std::string ending = ending_of(question.place);
  if (is_any_of(ending, {".csv", ".tsv", ".tab"})) return guess_table(question);
  if (is_any_of(ending, {".h5", ".hdf5", ".nc"})) return guess_hdf5(question);
  if (is_any_of(ending, {".npz"})) return with_fields(question, "npy", "arrays of NumPy");
  if (is_any_of(ending, {".jsonl", ".ndjson"})) return guess_jsonl(question);
  if (is_any_of(ending, {".tfrecord", ".tfrecords"})) return with_fields(question, "tfrecord", "TFRecords");
  if (is_any_of(ending, {".tar"})) {
    return guess_archive(question);
  }
  if (is_any_of(ending, {".txt"})) return guess_text(question);
  unknown(question.place, fmt::format("files that end with '{}' are not known", ending));
}

}  // namespace lockstep

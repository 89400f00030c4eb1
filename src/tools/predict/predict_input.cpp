// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/predict_input.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "config/yaml_node.h"
#include "data/choice_options.h"
#include "data/joined_dataset.h"
#include "data/reader_table.h"
#include "data/sample_mixing.h"
#include "data/transform_list.h"
#include "io/atomic_file.h"
#include "run/sections/overrides.h"

namespace lockstep {

namespace {

constexpr std::string_view kImages[] = {".jpg", ".jpeg", ".png"};

/// The reader for a file, as its ending says; empty: it does not.
std::string format_of_ending(const std::string& path) {
  std::error_code code;
  std::filesystem::path name(path);
  if (std::filesystem::is_directory(name, code)) return "images";
  if (name.extension() == ".gz") name = name.stem();
  std::string ending = name.extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return std::tolower(c); });
  if (ending == ".npy" || ending == ".npz") return "npy";
  if (ending == ".h5" || ending == ".hdf5" || ending == ".nc") return "hdf5";
  if (ending == ".csv") return "csv";
  return std::ranges::find(kImages, ending) != std::end(kImages) ? "images" : "";
}

/// Readers whose samples are numbers that any of the formats above could hold.
bool has_plain_samples(std::string_view format) {
  constexpr std::string_view kPlain[] = {"npy",    "hdf5",     "csv",        "images",   "idx",
                                         "binary", "tfrecord", "webdataset", "synthetic"};
  return std::ranges::find(kPlain, format) != std::end(kPlain);
}

bool has(std::span<const ParamSpec> table, std::string_view name) {
  return std::ranges::find(table, name, &ParamSpec::name) != table.end();
}

/// What a reader requires and a request replaces.
void add_places(Node& options, const ReaderEntry& reader, const std::string& input) {
  const bool is_archive = input.ends_with(".npz");
  const auto set = [&](const char* key, const char* value) {
    if (has(reader.table, key) && options.find(key) == nullptr) set_value(options, key, Node::scalar(value));
  };
  if (reader.name == "npy" && !is_archive) {
    set("features", "input.npy");
    return;
  }
  set("path", "input");
  set("features", "features");
}

/// The options of the training data that the other reader has as well; those of --input-option come first.
Params options_of_reader(const ReaderEntry& reader, const ReaderEntry& trained, const Node& written,
                         const std::string& input, const std::vector<std::string>& assignments) {
  Node options;
  options.kind = Node::Kind::map;
  options.where = "--input-option";
  for (const std::string& assignment : assignments) apply_override(options, assignment);
  constexpr std::string_view kOfFiles[] = {"path", "features", "labels", "rows", "layout"};
  for (const auto& [key, value] : written.entries)
    if (options.find(key) == nullptr && std::ranges::find(kOfFiles, key) == std::end(kOfFiles) &&
        ((has(reader.table, key) && has(trained.table, key)) || has(transforms_table(), key)))
      set_value(options, key, value);
  add_places(options, reader, input);
  // As of section data. All samples are taken, so there is nothing to choose.
  std::vector<ParamSpec> table(reader.table.begin(), reader.table.end());
  for (const auto& beside : {transforms_table(), choice_table(), mixing_table()})
    table.insert(table.end(), beside.begin(), beside.end());
  return {options, table, fmt::format("the input, reader {}", reader.name)};
}

/// Reads the samples of one input.
std::shared_ptr<const ReaderDataset> read_one(const DataInput& input, const ReaderDataset& trained,
                                              const std::vector<std::string>& paths, bool labels,
                                              const DatasetUse& use, const std::string& base_directory) {
  const InputRequest request{.paths = paths,
                             .feature_shape = trained.stored_shape(),
                             .text = trained.text(),
                             .table = trained.table(),
                             .class_names = trained.class_names(),
                             .labels = labels};
  const StageNumbers numbers = trained.stages().numbers();
  return std::make_shared<const ReaderDataset>(
      open_input(input.format, input.train, request, use)
          ->fitted({.normalization = numbers.normalization})
          .with_whitening(trained.stages().whitening().options())
          .with_transforms(TransformList(input.eval.value_or(input.train), base_directory), false)
          .fitted({.whitening = numbers.whitening}));
}

}  // namespace

bool is_standard_input(const std::string& input) { return input == "-"; }

DataOptions options_of_input(const Config& config, const std::vector<std::string>& inputs,
                             const std::string& format, const std::vector<std::string>& options) {
  const DataOptions& trained = config.data;
  const std::string& first = inputs.front();
  const bool may_differ =
      has_plain_samples(trained.format) && trained.others.empty() && trained.sources.empty();
  std::string wanted = format;
  if (wanted.empty() && may_differ && !is_standard_input(first)) wanted = format_of_ending(first);
  if (wanted.empty() || wanted == trained.format) {
    if (options.empty()) return trained;
    wanted = trained.format;
  }
  if (!may_differ)
    throw Error(ErrorKind::usage,
                fmt::format("the samples of this model can be read by {} alone", trained.format),
                format.empty() ? "--input-option" : "--input-format",
                "Leave it out: only samples of one input of numbers have another form.");
  const ReaderEntry& reader = find_reader(wanted, "--input-format");
  const ReaderEntry& before = find_reader(trained.format);
  const Node& data = *config.root.find("data");
  DataOptions other = trained;
  other.format = wanted;
  other.targets.clear();
  other.train = options_of_reader(reader, before, split_options(data, "train"), first, options);
  if (trained.eval)
    other.eval = options_of_reader(reader, before, split_options(data, "eval"), first, options);
  return other;
}

SpooledInput::SpooledInput() : file_(::memfd_create("lockstep-input", MFD_CLOEXEC)) {
  if (!file_.is_open()) throw file_error(ErrorKind::data, "make room for", "standard input", errno);
}

void SpooledInput::read_on_chief() {
  std::array<char, 1 << 16> block;
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, block.data(), block.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw file_error(ErrorKind::data, "read", "standard input", errno);
    if (got == 0) break;
    text_.append(block.data(), static_cast<std::size_t>(got));
  }
  if (text_.empty())
    throw Error(ErrorKind::data, "is empty", "standard input",
                "Pipe a file into it: lockstep predict ... < file");
}

void SpooledInput::share(Communicator& world) {
  std::uint64_t bytes = text_.size();
  world.broadcast(&bytes, sizeof bytes, 0, "standard input");
  text_.resize(bytes);
  world.broadcast(text_.data(), bytes, 0, "standard input");
  if (!write_fully(file_.get(), text_.data(), text_.size()))
    throw file_error(ErrorKind::data, "keep", "standard input", errno);
  text_.resize(std::min<std::size_t>(text_.size(), 16));  // for format()
}

std::string SpooledInput::path() const { return fmt::format("/proc/self/fd/{}", file_.get()); }

std::string SpooledInput::format() const {
  using namespace std::string_view_literals;
  const std::string_view text = text_;
  if (text.starts_with("\x93NUMPY"sv) || text.starts_with("PK\x03\x04"sv)) return "npy";
  if (text.starts_with("\x89HDF\r\n\x1a\n"sv)) return "hdf5";
  if (text.starts_with("\x89PNG"sv) || text.starts_with("\xff\xd8\xff"sv)) return "images";
  return "csv";
}

std::shared_ptr<const Dataset> read_input(const DataOptions& options, const Dataset& trained,
                                          const std::vector<std::vector<std::string>>& files, bool labels,
                                          int ranks_on_host, const std::string& base_directory) {
  const std::vector<const DataInput*> sets = sets_of(options);
  const DatasetUse use{.ranks_on_host = ranks_on_host, .inputs = static_cast<int>(sets.size())};
  const auto open = [&](bool with_labels) -> std::shared_ptr<const Dataset> {
    if (const ReaderDataset* const one = trained.single())
      return read_one(options, *one, files[0], with_labels, use, base_directory);
    std::vector<JoinedInput> inputs, targets;
    const std::vector<DatasetPart> parts = trained.parts();
    const std::size_t count = trained.inputs().size();
    for (std::size_t i = 0; i < count; ++i)
      inputs.push_back(
          {sets[i]->name, read_one(*sets[i], *parts[i].data, files[i],
                                   with_labels && trained.labels_come_from(i), use, base_directory)});
    for (std::size_t i = count; i < sets.size() && with_labels && !files[i].empty(); ++i)
      targets.push_back(
          {sets[i]->name, read_one(*sets[i], *parts[i].data, files[i], false, use, base_directory)});
    return std::make_shared<const JoinedDataset>(std::move(inputs), std::move(targets));
  };
  try {
    return open(labels);
  } catch (const Error& error) {
    if (!labels || error.kind() != ErrorKind::data) throw;
    try {
      open(false);
    } catch (const Error&) {
      throw error;
    }
    throw Error(error.kind(), error.what_happened(), error.where(),
                error.advice() + " The samples can be read: --ignore-labels predicts without their labels.");
  }
}

}  // namespace lockstep

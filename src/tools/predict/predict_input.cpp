// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/predict/predict_input.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <map>

#include "config/yaml_node.h"
#include "data/choice_options.h"
#include "data/good_samples.h"
#include "data/joined_dataset.h"
#include "data/opened_samples.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/sample_mixing.h"
#include "data/transform_list.h"
#include "io/atomic_file.h"
#include "run/sections/overrides.h"
#include "tools/predict/predict_files.h"

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
  constexpr std::string_view kOfFiles[] = {"path", "features", "labels", "rows"};
  // Names in files of one form: a table in an HDF5 file may be another one.
  const auto is_of_form = [&](std::string_view key) {
    return reader.name != trained.name && key == "columns";
  };
  for (const auto& [key, value] : written.entries)
    if (options.find(key) == nullptr && std::ranges::find(kOfFiles, key) == std::end(kOfFiles) &&
        !is_of_form(key) &&
        ((has(reader.table, key) && has(trained.table, key)) || has(transforms_table(), key)))
      set_value(options, key, value);
  add_places(options, reader, input);
  // As of section data. All samples are taken, so there is nothing to choose.
  std::vector<ParamSpec> table(reader.table.begin(), reader.table.end());
  for (const auto& beside : {transforms_table(), choice_table(), mixing_table()})
    table.insert(table.end(), beside.begin(), beside.end());
  return {options, table, fmt::format("the input, reader {}", reader.name)};
}

/// The options of an input or target as written, next to `split` of the data.
Node options_of_set(const Node& data, std::size_t number, const DataOptions& trained, const char* split) {
  const std::size_t inputs = num_inputs(trained);
  const Node* const list = data.find(number < inputs ? "inputs" : "targets");
  const std::size_t item = number < inputs ? number : number - inputs;
  if (list == nullptr || item >= list->entries.size()) return split_options(data, split);
  return split_options(data, list->entries[item].second, split);
}

/// An input or target whose files are open.
struct OpenedInput {
  const DataInput* set;
  const ReaderDataset* trained;
  OpenedSamples samples;
  std::int64_t first = 0;  ///< of the rows that training used
  std::vector<BadRecord> bad = {};
};

OpenedInput open_one(const DataInput& set, const ReaderDataset& trained,
                     const std::vector<std::string>& paths, bool labels) {
  const InputRequest request{.paths = paths,
                             .feature_shape = trained.stored_shape(),
                             .text = trained.text(),
                             .table = trained.table(),
                             .class_names = trained.class_names(),
                             .labels = labels};
  const std::span<const ParamSpec> table = find_reader(set.format).table;
  OpenedInput opened{
      .set = &set, .trained = &trained, .samples = open_input_files(set.format, set.train, request)};
  if (has(table, "rows"))
    if (const std::optional<RowRange> rows = rows_option(set.train)) opened.first = rows->first;
  if (!bad_record_options(set.train, table).skip) return opened;
  const OpenedSamples& samples = opened.samples;
  // Each bad sample is said, and has a row of its own: there is no limit.
  opened.bad =
      samples.knows_bad_records()
          ? samples.parts().bad
          : bad_records_of(samples, samples.size(), whole_set_threads(memory_options(set.train, {}).threads));
  return opened;
}

/// Leaves out the rows of each input that have no partner in the others, and bad samples of any of them,
/// which are returned.
std::vector<BadRecord> arrange(std::vector<OpenedInput>& all) {
  std::int64_t least = all.front().first, most = least;
  for (const OpenedInput& one : all) {
    least = std::min(least, one.first);
    most = std::max(most, one.first);
  }
  std::map<std::int64_t, BadRecord> bad;  // by sample
  std::int64_t samples = std::numeric_limits<std::int64_t>::max();
  for (const OpenedInput& one : all) samples = std::min(samples, one.samples.size() - (most - least));
  for (const OpenedInput& one : all)
    for (const BadRecord& record : one.bad) {
      const std::int64_t sample = record.sample - (one.first - least);
      if (sample >= 0 && sample < samples) bad.emplace(sample, record);
    }
  std::vector<BadRecord> found;
  for (const auto& [sample, record] : bad) found.push_back({sample, record.where, record.reason});
  for (OpenedInput& one : all) {
    const std::int64_t lag = one.first - least, size = one.samples.size();
    std::vector<std::int64_t> left_out;
    for (std::int64_t row = 0; row < std::min(lag, size); ++row) left_out.push_back(row);
    for (const auto& [sample, record] : bad) left_out.push_back(sample + lag);
    for (std::int64_t row = std::max(lag, size - (most - least - lag)); row < size; ++row)
      left_out.push_back(row);
    if (std::ssize(left_out) >= size && size > 0 && most > least)
      throw Error(ErrorKind::data,
                  fmt::format("has {} samples, but the rows of the inputs lie {} apart", size, most - least),
                  one.samples.source(), "Give a longer file, as the option rows of the inputs needs.");
    one.samples = leave_out(std::move(one.samples), std::move(one.bad), left_out);
  }
  return found;
}

/// Reads the samples of one input.
std::shared_ptr<const ReaderDataset> read_one(OpenedInput opened, const DatasetUse& use,
                                              const std::string& base_directory) {
  const DataInput& set = *opened.set;
  const ReaderDataset& trained = *opened.trained;
  const StageNumbers numbers = trained.stages().numbers();
  TransformList transforms(set.eval.value_or(set.train), base_directory);
  transforms.use_text(trained.shared_text());
  return std::make_shared<const ReaderDataset>(read_input_files(std::move(opened.samples), set.train, use)
                                                   ->fitted({.normalization = numbers.normalization})
                                                   .with_whitening(trained.stages().whitening().options())
                                                   .with_transforms(std::move(transforms), false)
                                                   .fitted({.whitening = numbers.whitening}));
}

}  // namespace

bool is_standard_input(const std::string& input) { return input == "-"; }

DataOptions options_of_input(const Config& config, const std::vector<std::string>& inputs,
                             const std::string& format, const std::vector<std::string>& options) {
  const DataOptions& trained = config.data;
  DataOptions all = trained;
  const bool is_only = trained.others.empty() && trained.sources.empty();
  const std::vector<const DataInput*> sets = sets_of(trained);
  const std::vector<std::vector<std::string>> files = files_by_input(trained, inputs);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    const DataInput& set = *sets[i];
    const bool is_input = i < num_inputs(trained);
    if (files[i].empty()) continue;
    const std::string& first = files[i].front();
    const bool may_differ = has_plain_samples(set.format) && trained.sources.empty();
    std::string wanted = is_input ? format : "";
    if (wanted.empty() && may_differ && !is_standard_input(first)) wanted = format_of_ending(first);
    if (wanted.empty()) wanted = set.format;
    if (wanted == set.format && (options.empty() || !is_input)) continue;
    if (!may_differ || ((!format.empty() || !options.empty()) && !is_only))
      throw Error(ErrorKind::usage,
                  fmt::format("the samples of this model can be read by {} alone", set.format),
                  format.empty() ? "--input-option" : "--input-format",
                  "Leave it out: only samples of one input of numbers have another form.");
    const ReaderEntry& reader = find_reader(wanted, "--input-format");
    const ReaderEntry& before = find_reader(set.format);
    const Node& data = *config.root.find("data");
    DataInput& other = i == 0     ? static_cast<DataInput&>(all)
                       : is_input ? all.others[i - 1]
                                  : all.targets[i - num_inputs(trained)];
    other.format = wanted;
    const auto options_for = [&](const char* split) {
      return options_of_reader(reader, before, options_of_set(data, i, trained, split), first, options);
    };
    other.train = options_for("train");
    if (set.eval) other.eval = options_for("eval");
  }
  return all;
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

InputSamples read_input(const DataOptions& options, const Dataset& trained,
                        const std::vector<std::vector<std::string>>& files, bool labels, int ranks_on_host,
                        const std::string& base_directory) {
  const std::vector<const DataInput*> sets = sets_of(options);
  const std::vector<DatasetPart> parts = trained.parts();
  const DatasetUse use{.ranks_on_host = ranks_on_host, .inputs = static_cast<int>(sets.size())};
  const std::size_t inputs = trained.inputs().size();
  const auto open = [&](bool with_labels) {
    std::vector<OpenedInput> opened;
    for (std::size_t i = 0; i < sets.size(); ++i) {
      if (i >= inputs && (!with_labels || files[i].empty())) continue;
      const bool brings_labels = i < inputs && with_labels && trained.labels_come_from(i);
      opened.push_back(open_one(*sets[i], *parts[i].data, files[i], brings_labels));
    }
    InputSamples samples{.data = nullptr, .bad = arrange(opened)};
    if (trained.single() != nullptr) {
      samples.data = read_one(std::move(opened.front()), use, base_directory);
      return samples;
    }
    std::vector<JoinedInput> of_inputs, of_targets;
    for (OpenedInput& one : opened) {
      const std::string name = one.set->name;
      (of_inputs.size() < inputs ? of_inputs : of_targets)
          .push_back({name, read_one(std::move(one), use, base_directory)});
    }
    samples.data = std::make_shared<const JoinedDataset>(std::move(of_inputs), std::move(of_targets));
    return samples;
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

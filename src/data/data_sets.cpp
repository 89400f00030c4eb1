// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens the data sets of a configuration.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/child_process.h"
#include "core/sizes.h"
#include "data/class_lists.h"
#include "data/class_quotas.h"
#include "data/data_files.h"
#include "data/data_options.h"
#include "data/good_samples.h"
#include "data/joined_dataset.h"
#include "data/length_buckets.h"
#include "data/opened_sets.h"
#include "data/program_input.h"
#include "data/reader_options.h"
#include "data/reader_table.h"
#include "data/sample_chain.h"
#include "data/sample_mixing.h"
#include "data/values_in_memory.h"
#include "data/whitening.h"

namespace lockstep {

void try_data_files(DataOptions& options, const std::string& base_directory,
                    std::span<const std::vector<std::string>> files, DataTrial which) {
  const std::vector<const DataInput*> sets = sets_of(options);
  const auto trial_of = [&](std::size_t i) { return find_reader(sets[i]->format).trial; };
  std::vector<std::string_view> formats;
  for (const DataInput* const input : sets) formats.push_back(input->format);
  for (const DataSource& source : options.sources) formats.push_back(source.format);
  const auto tried = std::ranges::find_if(
      formats, [](std::string_view format) { return find_reader(format).trial != nullptr; });
  if (tried == formats.end()) return;
  ChildNote file;
  const auto opening = [&](const std::string& path) { file.set(path); };
  const auto outcome = run_in_child([&] {
    for (std::size_t i = 0; i < sets.size(); ++i) {
      const DataInput& input = *sets[i];
      const auto trial = trial_of(i);
      if (trial == nullptr) continue;
      if (which.train) trial(input.train, base_directory, nullptr, opening);
      if (which.eval && input.eval) trial(*input.eval, base_directory, nullptr, opening);
      if (files.empty() || files[i].empty()) continue;
      const std::vector<std::string> paths = data_files(files[i], "");
      trial(input.train, base_directory, &paths, opening);
    }
    for (const DataSource& source : options.sources)
      if (const auto trial = which.train ? find_reader(source.format).trial : nullptr; trial != nullptr)
        trial(source.params, base_directory, nullptr, opening);
  });
  if (outcome)
    options.failure =
        Error(ErrorKind::data, fmt::format("damaged: the library that reads {} {}", *tried, *outcome),
              file.text(), "Copy or make the file again. Found by opening it in a process of its own.");
}

namespace {

const Params& params_of(const DataInput& input, bool evaluation) {
  return evaluation ? *input.eval : input.train;
}

DatasetUse use_of(const DataOptions& options, bool evaluation, DatasetUse use) {
  const ChoiceOptions& choice = evaluation ? options.eval_choice : options.train_choice;
  use.random_order = use.random_order || choice.scatters();
  use.read_once = use.read_once && !choice.scatters() && !choice.needs_labels();
  use.inputs = static_cast<int>(sets_of(options).size());
  return use;
}

/// Of sources the options of the first one whose reader has them.
DatasetMemory memory_of(const DataOptions& options, const DataInput& input, bool evaluation,
                        const DatasetUse& use) {
  const DatasetUse own = use_of(options, evaluation, use);
  if (evaluation || &input != &options || options.sources.empty())
    return memory_options(params_of(input, evaluation), own);
  for (const DataSource& source : options.sources) {
    const std::span<const ParamSpec> table = find_reader(source.format).table;
    if (std::ranges::find(table, "memory_gb", &ParamSpec::name) != table.end())
      return memory_options(source.params, own);
  }
  return {.random_order = own.random_order, .read_once = own.read_once};
}

/// Each source has its share of an epoch. `ends`: the sample after the last one of each.
std::shared_ptr<const ClassQuotas> mix_sources(const DataOptions& options, const SampleChoice* choice,
                                               std::span<const std::int64_t> ends) {
  std::vector<std::int32_t> source(static_cast<std::size_t>(ends.back()));
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < ends.size(); begin = ends[i++])
    std::fill(source.begin() + begin, source.begin() + ends[i], static_cast<std::int32_t>(i));
  ClassLists lists(source, choice);
  std::vector<double> shares;
  for (std::size_t i = 0; i < options.sources.size(); ++i) {
    if (std::ranges::binary_search(lists.labels(), static_cast<std::int32_t>(i)))
      shares.push_back(*options.sources[i].share);
    else
      throw Error(ErrorKind::data, fmt::format("no sample of source {} is used", options.sources[i].name),
                  options.sources[i].where, "Leave the source out, or choose other samples.");
  }
  const std::int64_t places = lists.num_samples() * options.train_choice.repeat;
  return std::make_shared<const ClassQuotas>(std::move(lists), shares, places);
}

/// How a set of all inputs and targets is used.
SampleUse use_of_samples(const Dataset& data, const DataOptions& options, bool evaluation,
                         std::span<const std::int64_t> source_ends) {
  SampleUse use;
  if (options.mixing && !evaluation)
    use.mixing = std::make_shared<const SampleMixing>(*options.mixing, data.feature_shape(),
                                                      data.label_kind() == LabelKind::indices,
                                                      data.num_label_columns());
  const ChoiceOptions& choice = evaluation ? options.eval_choice : options.train_choice;
  std::vector<std::int32_t> labels;
  if (choice.needs_labels()) labels = class_labels(data);
  std::vector<double> places;
  if (choice.split_key != SplitKey::none) places = split_places(data, choice.split_key, choice.split_seed);
  use.choice = choose_samples(choice, evaluation, data.size(), labels, places);
  if (!evaluation && choice.mixes_sources) use.quotas = mix_sources(options, use.choice.get(), source_ends);
  if (choice.balances) use.quotas = balance_classes(choice, use.choice.get(), labels);
  if (choice.length_buckets.empty()) return use;
  if (use.quotas != nullptr)
    throw choice.written.error("length_buckets",
                               "is given beside shares of data.sources: each decides the order of an epoch",
                               "Leave out one of them.");
  use.buckets = std::make_shared<const LengthBuckets>(sequence_lengths(data), choice.length_buckets,
                                                      use.choice.get(), choice.repeat);
  return use;
}

}  // namespace

namespace {

OpenedSamples opened_evaluation(const DataInput& input, const std::string& base_directory,
                                const ReaderDataset* trained) {
  const ReaderEntry& reader = find_reader(input.format);
  const Params& params = *input.eval;
  if (trained != nullptr && reader.make_as_trained != nullptr)
    return OpenedSamples(reader.make_as_trained(params, *trained, base_directory));
  if (reader.make_evaluation != nullptr)
    return OpenedSamples(reader.make_evaluation(params, input.train, base_directory));
  return OpenedSamples(reader.make(params, base_directory));
}

/// As the option class_names says, or as the training set was named.
void name_classes_as(OpenedSamples& data, const Params& params, const ReaderEntry& reader,
                     const std::string& base_directory, const ReaderDataset* trained) {
  if (trained == nullptr || trained->class_names().empty())
    name_classes(data, params, reader.table, base_directory);
  else if (data.parts().class_names.empty() && data.parts().label_kind == LabelKind::indices)
    data.name_classes(trained->class_names());
}

}  // namespace

namespace {

/// The files of a set, for messages; its format if the reader does not say.
std::string files_text(const DataInput& input, bool evaluation, const std::string& base_directory) {
  const ReaderEntry& reader = find_reader(input.format);
  if (reader.files == nullptr) return fmt::format("the data (format {})", input.format);
  const std::vector<std::string> paths = reader.files(params_of(input, evaluation), base_directory);
  return paths.empty() ? std::string(input.format) : name_of_files(paths);
}

}  // namespace

OpenedSets::OpenedSets(const DataOptions& options, bool evaluation, const std::string& base_directory,
                       const Dataset* trained)
    : options_(&options), evaluation_(evaluation), base_directory_(base_directory) {
  if (options.failure) throw Error(*options.failure);
  const std::vector<DatasetPart> parts = trained != nullptr ? trained->parts() : std::vector<DatasetPart>();
  for (const DataInput* const input : sets_of(options)) {
    const Params& params = params_of(*input, evaluation);
    const ReaderEntry& reader = find_reader(input->format);
    const bool chained = !evaluation && input == &options && !options.sources.empty();
    const BadRecordOptions bad_records = bad_record_options(params, reader.table);
    const ReaderDataset* const as = parts.empty() ? nullptr : parts[sets_.size()].data;
    std::optional<OpenedSamples> opened;
    read_into_memory([&] { return files_text(*input, evaluation, base_directory); },
                     [&] {
                       opened = chained      ? chained_sources(base_directory)
                                : evaluation ? opened_evaluation(*input, base_directory, as)
                                             : OpenedSamples(reader.make(params, base_directory));
                     });
    Set set{.name = input->name, .data = std::move(*opened), .bad_records = bad_records};
    if (!chained) name_classes_as(set.data, params, reader, base_directory, as);
    set.bad = set.data.parts().bad;
    if (set.data.has_store())
      set.threads = whole_set_threads(memory_of(options, *input, evaluation, {}).threads);
    sets_.push_back(std::move(set));
    texts_.push_back(as != nullptr ? as->shared_text() : nullptr);
  }
}

OpenedSets::OpenedSets(const DataOptions& options, const SampleDescription& description,
                       const std::string& base_directory)
    : options_(&options), evaluation_(false), described_(true), base_directory_(base_directory) {
  LOCKSTEP_CHECK(description.fits(options));
  for (const DataInput* const input : sets_of(options)) {
    DatasetParts sample = description.empty_sample(sets_.size());
    const std::span<const ParamSpec> table = find_reader(input->format).table;
    if (std::ranges::find(table, "scale", &ParamSpec::name) != table.end())
      sample.transform = transform_options(input->train);
    texts_.push_back(description.parts[sets_.size()].text);
    sets_.push_back({.name = input->name, .data = OpenedSamples(std::move(sample)), .bad_records = {}});
  }
}

OpenedSamples OpenedSets::chained_sources(const std::string& base_directory) {
  std::vector<OpenedSamples> sets;
  for (const DataSource& source : options_->sources) {
    const ReaderEntry& reader = find_reader(source.format);
    sets.emplace_back(reader.make(source.params, base_directory));
    name_classes(sets.back(), source.params, reader.table, base_directory);
    source_ends_.push_back((source_ends_.empty() ? 0 : source_ends_.back()) + sets.back().size());
  }
  return chained(std::move(sets));
}

bool OpenedSets::skips() const {
  return std::ranges::any_of(sets_, [](const Set& set) { return set.bad_records.skip; });
}

bool skips_bad_records(const DataOptions& options) {
  return std::ranges::any_of(sets_of(options), [](const DataInput* input) {
    const auto skips = [&](const Params& params) {
      return bad_record_options(params, find_reader(input->format).table).skip;
    };
    return skips(input->train) || (input->eval && skips(*input->eval));
  });
}

void OpenedSets::Set::take(std::vector<BadRecord> found) {
  std::vector<BadRecord> all;
  std::ranges::set_union(data.parts().bad, found, std::back_inserter(all), {}, &BadRecord::sample,
                         &BadRecord::sample);
  bad = std::move(all);
}

void OpenedSets::find_bad() {
  for (Set& set : sets_)
    if (set.to_scan()) set.take(bad_records_of(set.data, set.most(), set.threads));
}

namespace {
ReaderDataset with_whitening(const ReaderDataset& data, const Params& params) {
  try {
    return data.with_whitening(whiten_options(params));
  } catch (const Error& error) {
    if (!error.where().empty()) throw;
    throw Error(error.kind(), error.what_happened(), params.where("whiten"), error.advice());
  }
}
}  // namespace

/// A sample is bad if any of its parts is.
void OpenedSets::leave_out_bad() {
  if (std::exchange(left_out_, true)) return;
  std::vector<std::int64_t> samples;
  for (Set& set : sets_) {
    check_bad_records(set.bad, std::ssize(set.bad), set.most(), set.data.size());
    for (const BadRecord& record : set.bad) samples.push_back(record.sample);
    if (set.data.size() != sets_.front().data.size()) return;  // JoinedDataset says so
  }
  std::ranges::sort(samples);
  samples.erase(std::unique(samples.begin(), samples.end()), samples.end());
  if (samples.empty()) return;
  for (Set& set : sets_) set.data = leave_out(std::move(set.data), std::move(set.bad), samples);
  for (std::int64_t& end : source_ends_) end -= std::ranges::lower_bound(samples, end) - samples.begin();
}

std::int64_t OpenedSets::bytes_to_share(std::size_t set, const DatasetUse& use) const {
  const OpenedSamples& data = sets_[set].data;
  if (lent_store(data.parts()) != nullptr) return 0;  // they are there
  if (!data.has_store()) return bytes_in_memory(data.parts());
  const DatasetMemory memory = memory_of(*options_, *sets_of(*options_)[set], evaluation_, use);
  return memory.read_once || data.parts().size_bytes() > memory.shared_bytes ? 0
                                                                             : bytes_in_memory(data.parts());
}

namespace {
/// Samples that the program lends are used where they lie.
void use_in_place(OpenedSamples& opened) {
  const std::shared_ptr<const LentStore> lent = lent_store(opened.parts());
  if (lent == nullptr) return;
  const SampleValues& values = lent->values();  // which are only read
  opened.keep_values_at({const_cast<void*>(values.features), const_cast<std::int32_t*>(values.label_indices),
                         const_cast<float*>(values.label_rows)},
                        lent);
}
}  // namespace

/// An input or target, with all stages.
ReaderDataset OpenedSets::finished_set(std::size_t set, const DatasetUse& use) {
  const DataOptions& options = *options_;
  const DataInput& input = *sets_of(options)[set];
  const Params& params = params_of(input, evaluation_);
  OpenedSamples& opened = sets_[set].data;
  use_in_place(opened);
  const DatasetMemory memory =
      opened.has_store() ? memory_of(options, input, evaluation_, use) : DatasetMemory{};
  const ReaderDataset data =
      with_whitening(ReaderDataset(std::make_shared<const StoredSamples>(std::move(opened), memory)), params);
  if (!data.stages().knows_shape() && (sets_.size() > 1 || options.mixing))
    throw params.error(
        "whiten", "the number of components is needed where samples have several inputs, or are mixed",
        "Write it in place of their share of the variance; lockstep data shows the variances.");
  TransformList transforms(params, base_directory_);
  transforms.use_text(texts_[set]);
  return data.with_transforms(std::move(transforms), !evaluation_);
}

UsedDataset OpenedSets::finish(const DatasetUse& use) && {
  leave_out_bad();
  const DataOptions& options = *options_;
  std::vector<JoinedInput> inputs, targets;
  for (std::size_t i = 0; i < sets_.size(); ++i)
    read_into_memory(
        [source = sets_[i].data.source()] { return source; },
        [&] {
          (i < num_inputs(options) ? inputs : targets)
              .push_back({sets_[i].name, std::make_shared<const ReaderDataset>(finished_set(i, use))});
        });
  std::shared_ptr<const Dataset> data;
  if (options.name.empty() && options.targets.empty())
    data = std::move(inputs.front().data);
  else
    data = std::make_shared<const JoinedDataset>(std::move(inputs), std::move(targets));
  if (described_) return {std::move(data)};
  SampleUse samples = use_of_samples(*data, options, evaluation_, source_ends_);
  return {std::move(data), std::move(samples)};
}

UsedDataset open_training_set(const DataOptions& options, const std::string& base_directory,
                              const DatasetUse& use) {
  OpenedSets opened(options, false, base_directory);
  opened.find_bad();
  return std::move(opened).finish(use);
}

UsedDataset open_evaluation_set(const DataOptions& options, const std::string& base_directory,
                                const DatasetUse& use) {
  if (options.failure) throw Error(*options.failure);
  if (!options.eval) return {};
  OpenedSets opened(options, true, base_directory);
  opened.find_bad();
  return std::move(opened).finish(use);
}

}  // namespace lockstep

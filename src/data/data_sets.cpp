// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens the data sets of a configuration.
#include <fmt/format.h>

#include <algorithm>

#include "core/child_process.h"
#include "data/class_lists.h"
#include "data/data_files.h"
#include "data/data_options.h"
#include "data/opened_sets.h"
#include "data/reader_options.h"
#include "data/reader_table.h"

namespace lockstep {

void try_data_files(DataOptions& options, const std::string& base_directory,
                    std::span<const std::vector<std::string>> files) {
  const std::vector<const DataInput*> sets = sets_of(options);
  const auto trial_of = [&](std::size_t i) { return find_reader(sets[i]->format).trial; };
  std::size_t first = 0;
  while (first < sets.size() && trial_of(first) == nullptr) ++first;
  if (first == sets.size()) return;
  ChildNote file;
  const auto opening = [&](const std::string& path) { file.set(path); };
  const auto outcome = run_in_child([&] {
    for (std::size_t i = first; i < sets.size(); ++i) {
      const DataInput& input = *sets[i];
      const auto trial = trial_of(i);
      if (trial == nullptr) continue;
      trial(input.train, base_directory, nullptr, opening);
      if (input.eval) trial(*input.eval, base_directory, nullptr, opening);
      if (files.empty() || files[i].empty()) continue;
      const std::vector<std::string> paths = data_files(files[i], "");
      trial(input.train, base_directory, &paths, opening);
    }
  });
  if (outcome)
    options.failure = Error(
        ErrorKind::data, fmt::format("damaged: the library that reads {} {}", sets[first]->format, *outcome),
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

/// The samples of all inputs that are used.
void choose(Dataset& data, const DataOptions& options, bool evaluation) {
  const ChoiceOptions& choice = evaluation ? options.eval_choice : options.train_choice;
  std::vector<std::int32_t> labels;
  if (choice.needs_labels()) labels = class_labels(data);
  data.choose(choose_samples(choice, evaluation, data.size(), labels));
  if (choice.balances) data.balance(balance_classes(choice, data.choice().get(), labels));
}

}  // namespace

OpenedSets::OpenedSets(const DataOptions& options, bool evaluation, const std::string& base_directory)
    : options_(&options), evaluation_(evaluation) {
  if (options.failure) throw Error(*options.failure);
  for (const DataInput* const input : sets_of(options)) {
    const Params& params = params_of(*input, evaluation);
    const ReaderEntry& reader = find_reader(input->format);
    Set set{.name = input->name, .bad_records = bad_record_options(params, reader.table)};
    set.data = evaluation && reader.make_evaluation != nullptr
                   ? reader.make_evaluation(params, input->train, base_directory)
                   : reader.make(params, base_directory);
    set.bad = set.data->bad_records();
    if (set.data->has_store()) set.threads = memory_options(params, {}).threads;
    sets_.push_back(std::move(set));
  }
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

void OpenedSets::find_bad() {
  for (Set& set : sets_)
    if (set.to_scan()) set.bad = bad_records_of(*set.data, set.most(), set.threads);
}

/// A sample is bad if any of its parts is.
void OpenedSets::leave_out_bad() {
  std::vector<std::int64_t> samples;
  for (Set& set : sets_) {
    check_bad_records(set.bad, std::ssize(set.bad), set.most(), set.data->size());
    for (const BadRecord& record : set.bad) samples.push_back(record.sample);
    if (set.data->size() != sets_.front().data->size()) return;  // Dataset::join() says so
  }
  std::ranges::sort(samples);
  samples.erase(std::ranges::unique(samples).begin(), samples.end());
  if (samples.empty()) return;
  for (Set& set : sets_) set.data->leave_out(std::move(set.bad), samples);
}

std::unique_ptr<Dataset> OpenedSets::finish(const DatasetUse& use) && {
  leave_out_bad();
  const DataOptions& options = *options_;
  const std::vector<const DataInput*> sets = sets_of(options);
  for (std::size_t i = 0; i < sets.size(); ++i) {
    Dataset& data = *sets_[i].data;
    const Params& params = params_of(*sets[i], evaluation_);
    if (data.has_store()) data.prepare(memory_options(params, use_of(options, evaluation_, use)));
    data.set_transforms(TransformList(params), !evaluation_);
  }
  std::unique_ptr<Dataset> data;
  if (options.name.empty() && options.targets.empty()) {
    data = std::move(sets_.front().data);
  } else {
    std::vector<JoinedInput> inputs, targets;
    for (std::size_t i = 0; i < sets.size(); ++i)
      (i < num_inputs(options) ? inputs : targets).push_back({sets[i]->name, std::move(sets_[i].data)});
    data = Dataset::join(std::move(inputs), std::move(targets));
  }
  if (options.mixing && !evaluation_) data->set_mixing(*options.mixing);
  choose(*data, options, evaluation_);
  return data;
}

std::unique_ptr<Dataset> open_training_set(const DataOptions& options, const std::string& base_directory,
                                           const DatasetUse& use) {
  OpenedSets opened(options, false, base_directory);
  opened.find_bad();
  return std::move(opened).finish(use);
}

std::unique_ptr<Dataset> open_evaluation_set(const DataOptions& options, const std::string& base_directory,
                                             const DatasetUse& use) {
  if (options.failure) throw Error(*options.failure);
  if (!options.eval) return nullptr;
  OpenedSets opened(options, true, base_directory);
  opened.find_bad();
  return std::move(opened).finish(use);
}

}  // namespace lockstep

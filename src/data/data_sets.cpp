// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Opens the data sets of a configuration.
#include <fmt/format.h>

#include "core/child_process.h"
#include "data/class_lists.h"
#include "data/data_files.h"
#include "data/data_options.h"
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

std::unique_ptr<Dataset> open_input(const DataInput& input, bool evaluation,
                                    const std::string& base_directory, const DatasetUse& use) {
  const Params& params = evaluation ? *input.eval : input.train;
  std::unique_ptr<Dataset> data =
      evaluation ? open_evaluation_dataset(input.format, params, input.train, base_directory, use)
                 : open_dataset(input.format, params, base_directory, use);
  data->set_transforms(TransformList(params), !evaluation);
  return data;
}

DatasetUse use_of(const DataOptions& options, bool evaluation, DatasetUse use) {
  if (options.failure) throw Error(*options.failure);
  const ChoiceOptions& choice = evaluation ? options.eval_choice : options.train_choice;
  use.random_order = use.random_order || choice.scatters();
  use.read_once = use.read_once && !choice.scatters() && !choice.needs_labels();
  use.inputs = static_cast<int>(sets_of(options).size());
  return use;
}

/// The samples of all inputs.
std::unique_ptr<Dataset> open_joined(const DataOptions& options, bool evaluation,
                                     const std::string& base_directory, const DatasetUse& use) {
  if (options.name.empty() && options.targets.empty())
    return open_input(options, evaluation, base_directory, use);
  std::vector<JoinedInput> inputs, targets;
  const std::vector<const DataInput*> sets = sets_of(options);
  for (std::size_t i = 0; i < sets.size(); ++i)
    (i < num_inputs(options) ? inputs : targets)
        .push_back({sets[i]->name, open_input(*sets[i], evaluation, base_directory, use)});
  return Dataset::join(std::move(inputs), std::move(targets));
}

/// Those that are used of them.
void choose(Dataset& data, const DataOptions& options, bool evaluation) {
  const ChoiceOptions& choice = evaluation ? options.eval_choice : options.train_choice;
  std::vector<std::int32_t> labels;
  if (choice.needs_labels()) labels = class_labels(data);
  data.choose(choose_samples(choice, evaluation, data.size(), labels));
  if (choice.balances) data.balance(balance_classes(choice, data.choice().get(), labels));
}

std::unique_ptr<Dataset> open_chosen(const DataOptions& options, bool evaluation,
                                     const std::string& base_directory, const DatasetUse& use) {
  std::unique_ptr<Dataset> data =
      open_joined(options, evaluation, base_directory, use_of(options, evaluation, use));
  if (options.mixing && !evaluation) data->set_mixing(*options.mixing);
  choose(*data, options, evaluation);
  return data;
}
}  // namespace

std::unique_ptr<Dataset> open_training_set(const DataOptions& options, const std::string& base_directory,
                                           const DatasetUse& use) {
  return open_chosen(options, false, base_directory, use);
}

std::unique_ptr<Dataset> open_evaluation_set(const DataOptions& options, const std::string& base_directory,
                                             const DatasetUse& use) {
  if (options.failure) throw Error(*options.failure);
  return options.eval ? open_chosen(options, true, base_directory, use) : nullptr;
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/convert/source_opening.h"

#include <algorithm>

#include "comm/agree.h"
#include "core/log.h"
#include "data/reader_dataset.h"
#include "run/setup/normalize_sets.h"
#include "run/setup/opened_data.h"

namespace lockstep {

void choose_input(Config& config, const ConvertArguments& arguments) {
  DataOptions& data = config.data;
  const std::vector<const DataInput*> sets = sets_of(data);
  std::string names;
  for (const DataInput* set : sets) names += (names.empty() ? "" : ", ") + set->name;
  if (arguments.input.empty() && (sets.size() > 1 || !sets.front()->name.empty()))
    throw Error(ErrorKind::config,
                fmt::format("the samples have several inputs or targets ({}), and a file takes one", names),
                arguments.config, "Convert one after the other: --input NAME.");
  if (arguments.input.empty()) return;
  const auto found = std::ranges::find(sets, arguments.input, &DataInput::name);
  if (found == sets.end())
    throw Error(
        ErrorKind::config, fmt::format("no input or target is named '{}'", arguments.input), arguments.config,
        names.empty() ? "Leave out --input: data.inputs has none." : fmt::format("There are {}.", names));
  if (sets.size() > 1 && skips_bad_records(data))
    throw Error(
        ErrorKind::config,
        "a sample is left out if any of its parts is bad, so files of single inputs would differ in their "
        "samples",
        arguments.config, "Remove the bad records, or leave out bad_records.");
  DataInput chosen = **found;
  chosen.name.clear();
  static_cast<DataInput&>(data) = std::move(chosen);
  data.others.clear();
  data.targets.clear();
  data.mixing.reset();
}

Node options_of_set(const Config& config, const ConvertArguments& arguments) {
  const Node& section = *config.root.find("data");
  for (const char* const key : {"inputs", "targets"})
    if (const Node* const sets = section.find(key); sets != nullptr && !arguments.input.empty())
      if (const Node* const own = sets->find(arguments.input))
        return split_options(section, *own, arguments.part);
  return split_options(section, arguments.part);
}

std::unique_ptr<SampleSource> open_source(Communicator& world, const Config& config,
                                          const ConvertArguments& arguments, SampleFormat format,
                                          int ranks_on_host, int threads) {
  const bool training = arguments.part == "train";
  if (!training && !config.data.eval)
    throw Error(ErrorKind::config, "there is no evaluation set to convert", arguments.config,
                "Add eval: to section data, or leave out --part.");
  const auto open = [&](bool of_training, bool read_once) {
    OpenedData opened;
    agree(
        world, [&] { opened = open_data(config, of_training, !of_training); }, "opening the data");
    share_bad_records(world, opened, "", threads);
    UsedDataset data;
    agree(
        world,
        [&] {
          data = std::move(*(of_training ? opened.train : opened.eval))
                     .finish({.ranks_on_host = ranks_on_host, .read_once = read_once});
        },
        "reading the data");
    return data;
  };
  UsedDataset data = open(training, true);
  if (world.rank() == 0)
    for (const std::string& note : bad_records_notes(*data))
      log_warning("{} set: {}", training ? "training" : "evaluation", note);
  if (arguments.transforms && !data->single()->stages().are_fitted()) {
    UsedDataset numbers = open(true, false), none;
    normalize_sets(world, numbers, none, "", threads);
    data = {
        std::make_shared<const ReaderDataset>(data->single()->fitted(numbers->single()->stages().numbers())),
        data.use()};
  }
  return std::make_unique<SampleSource>(std::move(data), arguments.transforms, format);
}

}  // namespace lockstep

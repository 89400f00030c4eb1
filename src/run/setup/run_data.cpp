// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/run_data.h"

#include <algorithm>
#include <memory>

#include "comm/agree.h"
#include "core/error.h"
#include "data/kept_index.h"
#include "data/reader_dataset.h"
#include "run/setup/shared_sets.h"
#include "session/kept_data.h"

namespace lockstep {

namespace {

/// Before any rank opens a file: what the chief found must not end another one (data_trial.h).
void refuse_what_the_trial_found(Communicator& world, const Config& config) {
  agree(
      world,
      [&] {
        if (config.data.failure) throw Error(*config.data.failure);
      },
      "trying the data files");
}

OpenedData open_files(Communicator& world, const Config& config, const RunNeeds& needs,
                      const Dataset* trained) {
  OpenedData opened;
  agree(
      world,
      [&] {
        const std::string folder = needs.index_in.empty() ? "" : needs.index_in + "/index";
        const IndexFolder index(folder, world.rank() == 0 && needs.updates);
        try {
          opened = open_data(config, needs.train && trained == nullptr, needs.eval, trained);
        } catch (const Error& error) {
          if (!needs.described || !needs.train || trained != nullptr || error.kind() == ErrorKind::bug) throw;
          throw without_description(error, needs);
        }
        index.remove_unused();
      },
      "opening the data");
  return opened;
}

}  // namespace

Error without_description(const Error& error, const RunNeeds& needs) {
  return Error(error.kind(),
               fmt::format("{}. The training data are needed, because the checkpoint does not describe its "
                           "samples{}",
                           error.what_happened(),
                           needs.kept != nullptr ? " as section data has them"
                                                 : ": an earlier version of Lockstep has written it"),
               error.where(),
               error.advice() + (error.advice().empty() ? "" : " ") +
                   "Work where the training data are; predict and evaluate find them elsewhere by --set "
                   "data.path=...");
}

DatasetUse use_of_training_set(const Config& config, const RunNeeds& needs) {
  return {.ranks_on_host = needs.ranks_on_host, .random_order = config.train.shuffle == Shuffle::samples};
}

DatasetUse use_of_evaluation_set(const RunNeeds& needs) { return {.ranks_on_host = needs.ranks_on_host}; }

UsedDataset described_training_set(const Config& config, const RunNeeds& needs) {
  if (!needs.described || needs.updates) return {};
  const auto description = kept_description(needs.kept.get(), "the checkpoint");
  if (!description || !description->fits(config.data)) return {};
  return OpenedSets(config.data, *description, config.base_directory).finish({});
}

RunData read_data(const Config& config, const RunNeeds& needs, OpenedData opened) {
  RunData all;
  if (opened.train) all.train = std::move(*opened.train).finish(use_of_training_set(config, needs));
  if (opened.eval) all.eval = std::move(*opened.eval).finish(use_of_evaluation_set(needs));
  LOCKSTEP_REQUIRE(all.train || all.eval, ErrorKind::config,
                   "section data has no evaluation set: add `eval:` with its options");
  return all;
}

bool RunData::knows_shapes() const {
  const auto knows_shape = [](const UsedDataset& set) {
    return !set || std::ranges::all_of(set->parts(), [](const DatasetPart& part) {
      return part.data->stages().knows_shape();
    });
  };
  return knows_shape(train) && knows_shape(eval);
}

RunData read_run_data(CommEnvironment& environment, const Config& config, RunNeeds needs,
                      const RankPlace& place) {
  Communicator& world = environment.world();
  needs.ranks_on_host = place.ranks_on_host;
  refuse_what_the_trial_found(world, config);
  UsedDataset described;
  agree(
      world, [&] { described = described_training_set(config, needs); },
      "reading the description of the samples");
  OpenedData opened = open_files(world, config, needs, described.get());
  share_bad_records(world, opened, needs.kept_in, place.cores);
  const std::unique_ptr<Communicator> host = world.split_by_host("host");
  share_memory_of_host(world, *host, config, needs, opened);
  RunData data;
  agree(
      world,
      [&] {
        if (described && !needs.eval) return;
        data = read_data(config, needs, std::move(opened));
      },
      "reading data");
  if (!described) return data;
  data.train = std::move(described);
  data.train_is_described = true;
  return data;
}

}  // namespace lockstep

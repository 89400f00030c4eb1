// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep predict`: what one model, or an ensemble, says about the samples of files. The format is chosen
// by the ending of --output (io/prediction_file.h). Batch by batch, each rank writes the rows of its own
// samples into a file of HDF5; other formats, and streams, are written by rank 0.
#include "driver/commands/predict.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "api/launch.h"
#include "comm/agree.h"
#include "comm/share_text.h"
#include "comm/shared_error.h"
#include "comm/startup_check.h"
#include "core/error.h"
#include "core/log.h"
#include "core/range.h"
#include "data/data_files.h"
#include "data/reader_table.h"
#include "data/table_info.h"
#include "driver/commands/predict_work.h"
#include "io/print_result.h"
#include "run/jobs/predicted_head.h"
#include "run/setup/data_trial.h"
#include "run/setup/run_directory.h"
#include "session/run_vocabulary.h"
#include "tools/predict/augmented_views.h"
#include "tools/predict/predict_files.h"
#include "tools/predict/sample_ids.h"
#include "train/output_units.h"

namespace lockstep {

namespace {

/// The outputs of a layer.
PredictedHead describe(const std::string& layer, const Shape& shape, bool is_only) {
  return {.name = is_only ? "" : layer, .shape = shape, .quantity = "value"};
}

/// The files of each input, with folders and patterns looked up; standard input as a file.
std::vector<std::vector<std::string>> files_of(PredictWork& work, const DataOptions& data,
                                               std::vector<std::string>& paths) {
  std::vector<std::string> named = work.arguments.inputs;
  if (work.standard_input) named = {work.standard_input->path()};
  std::vector<std::vector<std::string>> files = files_by_input(data, named);
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (files[i].empty()) continue;
    if (!work.standard_input)
      files[i] = find_reader(sets_of(data)[i]->format).reads_folders ? files_and_folders(files[i], "")
                                                                     : data_files(files[i], "");
    for (const std::string& file : files[i])
      if (std::ranges::find(paths, file) == paths.end()) paths.push_back(file);
  }
  return files;
}

/// Takes the set of the configuration of each member. Not collective.
void take_sets(PredictWork& work) {
  for (std::size_t m = 0; m < work.members.size(); ++m) {
    RunContext& context = *work.members[m].context;
    const UsedDataset& set = work.arguments.set_name == "eval" ? context.eval_set() : context.train_set();
    if (context.is_chief()) check_vocabulary(work.targets[m].target.run_dir, *set);
    work.samples.push_back(set);
    if (m > 0) continue;
    const DataOptions& data = context.config().data;
    work.ids = ids_of_set(data, work.arguments.set_name == "eval", *set, context.config().base_directory,
                          work.arguments.id_column);
    work.id_of_file = id_of_file(data, work.arguments.id_column);
  }
}

/// Reads the samples as each member reads them. Not collective.
void read_samples(PredictWork& work, std::vector<std::string>& paths) {
  const bool labels =
      holds_labels(work.ending) && !work.arguments.ignore_labels && work.arguments.layers.empty();
  for (std::size_t m = 0; m < work.members.size(); ++m) {
    RunContext& context = *work.members[m].context;
    if (context.is_chief()) check_vocabulary(work.targets[m].target.run_dir, context.train_data());
    const DataOptions& data = work.inputs[m];
    const TableInfo* const table = context.train_data().table();
    if (data.format != context.config().data.format && table != nullptr && !table->categories_text().empty())
      throw Error(ErrorKind::usage, fmt::format("categories of a table cannot be read by {}", data.format),
                  "--input", "Give a file of the form of the training data.");
    const std::vector<std::vector<std::string>> files = files_of(work, data, paths);
    InputSamples input = read_input(data, context.train_data(), files, labels && m == 0,
                                    context.ranks_on_host(), context.config().base_directory);
    work.samples.emplace_back(input.data);
    if (m == 0) {
      work.bad = std::move(input.bad);
      work.ids = sample_ids(data, context.train_data(), files.front(), work.arguments.id_column);
      work.id_of_file = id_of_file(data, work.arguments.id_column);
      const std::int64_t rows = work.samples[0]->size() + std::ssize(work.bad);
      if (!work.ids.empty() && std::ssize(work.ids) != rows) {
        // samples of several inputs whose rows lie apart, or that are cut out of longer texts
        if (!work.arguments.id_column.empty())
          throw Error(ErrorKind::usage, fmt::format("has {} values for {} samples", work.ids.size(), rows),
                      "--id-column", "Leave it out: --sample-names writes where each sample comes from.");
        work.ids.clear();
      }
    } else if (work.bad != input.bad || work.samples[m]->size() != work.samples[0]->size()) {
      throw Error(ErrorKind::data,
                  fmt::format("the members of the ensemble read {} and {} samples from the input",
                              work.samples[0]->size(), work.samples[m]->size()),
                  paths.front(),
                  "Give members that cut the input into the same samples, and have the same bad_records.");
    }
  }
  if (!work.first().is_chief()) return;
  for (const BadRecord& record : work.bad)
    log_warning("sample {} is bad, and its row is NaN: {}: {}", record.sample, record.where, record.reason);
}

void check_sizes(const PredictWork& work) {
  for (std::size_t m = 1; m < work.samples.size(); ++m)
    if (work.streams[m]->size() != work.streams[0]->size())
      throw Error(ErrorKind::data,
                  fmt::format("its set has {} samples, that of {} has {}", work.streams[m]->size(),
                              work.targets.front().target.run_dir, work.streams[0]->size()),
                  work.targets[m].target.run_dir, "Members of an ensemble predict the same samples.");
}

/// Rank 0: makes the file of predictions.
void make_writer(PredictWork& work, bool all_ranks_write, const std::vector<std::string>& paths) {
  std::vector<std::string> digests, checkpoints;
  for (const Member& member : work.members) {
    checkpoints.push_back(member.found.path);
    digests.push_back(member.found.header.digest);
  }
  if (all_ranks_write) work.shared_path = work.file->shared_path();
  std::function<std::string(std::int64_t)> sample_name, id;
  const auto where = [&work](std::int64_t place) {
    if (const auto position = work.position_of(place))
      return work.samples.front()->where(work.streams.front()->sample_at(*position));
    return std::ranges::find(work.bad, place, &BadRecord::sample)->where;
  };
  if (work.arguments.sample_names) sample_name = where;
  if (work.id_of_file) id = [&work, where](std::int64_t place) { return work.id_of_file(where(place)); };
  if (!work.ids.empty())
    id = [&work](std::int64_t place) {
      const std::int64_t row = work.takes_set() ? work.streams.front()->sample_at(place) : place;
      return work.ids[static_cast<std::size_t>(row)];
    };
  work.writer =
      make_prediction_writer(work.ending, *work.file,
                             {.heads = work.heads,
                              .samples = work.num_rows(),
                              .global_step = work.members.front().found.header.global_step,
                              .checkpoint = fmt::format("{}", fmt::join(checkpoints, "\n")),
                              .checkpoint_digest = fmt::format("{}", fmt::join(digests, "\n")),
                              .input = work.takes_set() ? fmt::format("the {} set", work.arguments.set_name)
                                       : work.standard_input ? "standard input"
                                                             : fmt::format("{}", fmt::join(paths, "\n")),
                              .sample_name = std::move(sample_name),
                              .id = std::move(id),
                              .id_name = work.arguments.id_column.empty() ? "id" : work.arguments.id_column,
                              .number = numbers_of(work)});
  work.offsets = work.writer->offsets();
}

void describe_outputs(PredictWork& work) {
  RunContext& context = work.first();
  work.labels.emplace(*work.samples.front(), context.train_data(), *context.model().heads);
  const PredictionStream& stream = *work.streams.front();
  const std::vector<std::string>& layers = work.arguments.layers;
  for (std::size_t i = 0; i < layers.size(); ++i)
    work.heads.push_back(describe(layers[i], stream.shape(static_cast<int>(i)), layers.size() == 1));
  if (!layers.empty()) return;
  const Heads& heads = *context.model().heads;
  for (int head = 0; head < heads.size(); ++head) {
    PredictedHead& described = work.heads.emplace_back(
        predicted_head(heads[head], context.train_data().class_names(), stream.units(head)));
    if (context.is_chief() && !described.as_trained.empty())
      log_warning("{}predictions are in the units of training, not of the data: {}", heads[head].prefix(),
                  described.as_trained);
    described.has_spread = work.is_ensemble() && work.ending != ".npy";
    if (!work.arguments.ignore_labels) work.labels->describe(head, described);
  }
}

/// The input's data sets on all ranks, and the open output. All ranks. Several ranks share the work of a file
/// with fixed places for rows.
void open_files(PredictWork& work) {
  Communicator& world = work.world();
  std::vector<std::string> paths;
  bool all_ranks_write = false;
  shared([&] {
    if (!work.takes_set() && is_standard_input(work.arguments.inputs.front())) {
      work.standard_input = std::make_unique<SpooledInput>();
      agree(
          world,
          [&] {
            if (world.rank() == 0) work.standard_input->read_on_chief();
          },
          "reading standard input");
      work.standard_input->share(world);
      for (std::size_t m = 0; m < work.inputs.size(); ++m)
        if (work.arguments.input_format.empty())
          work.inputs[m] = options_of_input(work.targets[m].target.config, work.arguments.inputs,
                                            work.standard_input->format(), work.arguments.input_options);
    }
    agree(
        world,
        [&] {
          if (work.takes_set())
            take_sets(work);
          else
            read_samples(work, paths);
        },
        "reading the input");
    const NamedText same[] = {{"input", work.samples.front()->fingerprint()}};
    require_same(world, same);
    int parts = 0;
    agree(
        world,
        [&] {
          if (world.rank() != 0) return;
          std::vector<std::string> inputs = paths;
          for (std::size_t m = 0; m < work.members.size(); ++m)
            inputs.insert(inputs.end(),
                          {work.members[m].found.path, work.targets[m].target.run_dir + "/config.yaml"});
          work.file = std::make_unique<OutputFile>(work.arguments.output, inputs);
          const bool is_hdf5 = work.ending == ".h5" || work.ending == ".hdf5";
          parts = is_hdf5 && world.size() > 1 && !work.file->is_stream() ? 1 : 0;
        },
        "opening the output");
    world.broadcast(&parts, sizeof parts, 0, "who writes");
    all_ranks_write = parts != 0;
    agree(
        world,
        [&] {
          for (std::size_t m = 0; m < work.members.size(); ++m) {
            RunContext& context = *work.members[m].context;
            add_streams_of_views(context, work.samples[m],
                                 work.takes_set() ? context.config().data : work.inputs[m],
                                 work.arguments.augmentations,
                                 {.batch_size = work.targets.front().target.config.train.batch_size,
                                  .layers = work.arguments.layers,
                                  .collects = !all_ranks_write},
                                 work.streams, work.views);
          }
          check_sizes(work);
          describe_outputs(work);
          if (world.rank() == 0) make_writer(work, all_ranks_write, paths);
        },
        "opening the output");
    if (!all_ranks_write) return;
    work.shared_path = broadcast_text(world, work.shared_path, "the path of the output");
    std::uint64_t count = work.offsets.size();
    world.broadcast(&count, sizeof count, 0, "the places of rows");
    work.offsets.resize(count);
    world.broadcast(work.offsets.data(), count * sizeof(std::uint64_t), 0, "the places of rows");
    agree(
        world,
        [&] {
          work.part =
              std::make_unique<PredictionPart>(work.shared_path, work.heads, work.offsets, numbers_of(work));
        },
        "opening the output");
  });
}

int predict(CommEnvironment& environment, PredictWork work) {
  // The model's input shape is that of the data it was trained on.
  const bool takes_train = work.arguments.set_name == "train", takes_eval = work.arguments.set_name == "eval";
  for (const MemberTarget& target : work.targets) {
    shared([&] {
      if (takes_eval && !target.target.config.data.eval)
        throw Error(ErrorKind::config, "section data has no evaluation set", target.target.run_dir,
                    "Give the samples with --input, or --set-name train.");
    });
    work.members.push_back(open_member(environment, target, {.train = true, .eval = takes_eval},
                                       work.arguments.run.averages, !takes_train));
  }
  shared([&] { check_same_heads(work.members, work.targets); });
  open_files(work);
  predict_all(work);
  close_prediction_files(work);
  const std::int64_t samples = work.num_rows();
  const std::string of = work.is_ensemble()
                             ? fmt::format("of an ensemble of {}", work.members.size())
                             : fmt::format("of step {}", work.members.front().found.header.global_step);
  if (work.first().is_chief() && is_standard_output(work.arguments.output))
    log_info("{} predictions {} written to standard output", samples, of);
  else if (work.first().is_chief())
    print_result("{} predictions {} written to {}\n", samples, of, work.arguments.output);
  return 0;
}

void check_arguments(const PredictArguments& arguments, std::size_t members) {
  if (members > 1 && !arguments.layers.empty())
    throw Error(ErrorKind::usage, "--layer belongs to one model, and an ensemble is given", "--layer",
                "Outputs of layers of different models cannot be averaged: predict with each of them.");
  for (const std::string& input : arguments.inputs)
    if (is_standard_input(input) && arguments.inputs.size() > 1)
      throw Error(ErrorKind::usage, "standard input stands beside files", "--input",
                  "Give - alone, or files alone.");
}

}  // namespace

int predict_samples(const PredictArguments& arguments) {
  std::vector<MemberTarget> targets =
      member_targets(arguments.run, arguments.more_runs, arguments.more_checkpoints);
  check_arguments(arguments, targets.size());
  PredictWork work{.arguments = arguments, .targets = targets};
  work.ending = output_ending(arguments.output, prediction_endings());  // before anything is read
  for (MemberTarget& member : targets) {
    Config& config = member.target.config;
    const bool described = describes_samples(member.target.run_dir, member.checkpoint);
    if (described && arguments.set_name != "train")
      refuse_without_effect(arguments.run.overrides, arguments.set_name.empty());
    const DataTrial trial{.train = arguments.set_name == "train" || !described,
                          .eval = arguments.set_name == "eval"};
    if (!arguments.set_name.empty()) {
      try_data_on_chief(config, {}, trial);
      continue;
    }
    DataOptions input =
        options_of_input(config, arguments.inputs, arguments.input_format, arguments.input_options);
    if (is_standard_input(arguments.inputs.front())) {
      try_data_on_chief(config, {}, trial);
    } else {
      std::swap(config.data, input);
      const std::vector<std::vector<std::string>> files = files_by_input(config.data, arguments.inputs);
      try_data_on_chief(config, files, trial);
      std::swap(config.data, input);
      config.data.failure = input.failure;
    }
    work.inputs.push_back(std::move(input));
  }
  const CommunicationOptions& comm = targets.front().target.config.comm;
  return run_on_ranks({comm.timeout_seconds, comm.start_timeout_seconds}, arguments.run.quiet,
                      [&](CommEnvironment& environment) { return predict(environment, std::move(work)); });
}

}  // namespace lockstep

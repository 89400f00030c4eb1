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
#include "io/print_result.h"
#include "run/jobs/true_labels.h"
#include "run/setup/data_trial.h"
#include "session/run_vocabulary.h"
#include "tools/predict/predict_files.h"
#include "tools/predict/predict_input.h"
#include "tools/predict/predict_members.h"

namespace lockstep {

namespace {

/// What the numbers of Predictor::Values::predictions are. A sigmoid's predictions are its inputs.
std::string_view quantity_of(PredictionKind kind) {
  switch (kind) {
    case PredictionKind::classes:
      return "probability";
    case PredictionKind::labels:
      return "logit";
    case PredictionKind::values:
      return "value";
  }
  return "value";
}

PredictedHead describe(const Head& head, const std::vector<std::string>& class_names) {
  const PredictionKind kind = head.loss->predictions();
  PredictedHead described{.name = head.name,
                          .shape = head.shape,
                          .quantity = quantity_of(kind),
                          .has_classes = kind == PredictionKind::classes};
  // The names belong to the data's labels: a head with a table has other ones.
  if (kind != PredictionKind::values && head.table.empty() &&
      static_cast<std::int64_t>(class_names.size()) == described.classes())
    described.class_names = class_names;
  return described;
}

/// The outputs of a layer.
PredictedHead describe(const std::string& layer, const Shape& shape, bool is_only) {
  return {.name = is_only ? "" : layer, .shape = shape, .quantity = "value"};
}

/// A command at work, on a rank.
struct Work {
  const PredictArguments& arguments;
  const std::vector<MemberTarget>& targets;
  std::vector<DataOptions> inputs;               ///< by member
  std::unique_ptr<SpooledInput> standard_input;  ///< null: not read
  std::vector<Member> members;
  std::vector<UsedDataset> samples;  ///< by member
  std::vector<std::unique_ptr<PredictionStream>> streams;
  std::string_view ending;

  std::unique_ptr<OutputFile> file;          ///< on rank 0
  std::unique_ptr<PredictionWriter> writer;  ///< likewise
  std::unique_ptr<PredictionPart> part;      ///< of this rank, where all ranks write
  std::optional<TrueLabels> labels;
  std::vector<PredictedHead> heads;
  std::vector<std::uint64_t> offsets;
  std::string shared_path;

  RunContext& first() { return *members.front().context; }
  Communicator& world() { return first().world(); }
  bool is_ensemble() const { return members.size() > 1; }
};

/// The files of each input, with folders and patterns looked up; standard input as a file.
std::vector<std::vector<std::string>> files_of(Work& work, const DataOptions& data,
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

/// Reads the samples as each member reads them. Not collective.
void read_samples(Work& work, std::vector<std::string>& paths) {
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
    work.samples.emplace_back(read_input(data, context.train_data(), files, labels && m == 0,
                                         context.ranks_on_host(), context.config().base_directory));
    if (work.samples[m]->size() != work.samples[0]->size())
      throw Error(ErrorKind::data,
                  fmt::format("the members of the ensemble read {} and {} samples from the input",
                              work.samples[0]->size(), work.samples[m]->size()),
                  paths.front(), "Give members that cut the input into the same samples.");
  }
}

/// Rank 0: makes the file of predictions.
void make_writer(Work& work, bool all_ranks_write, const std::vector<std::string>& paths) {
  std::vector<std::string> digests, checkpoints;
  for (const Member& member : work.members) {
    checkpoints.push_back(member.found.path);
    digests.push_back(member.found.header.digest);
  }
  if (all_ranks_write) work.shared_path = work.file->shared_path();
  std::function<std::string(std::int64_t)> sample_name;
  if (work.arguments.sample_names)
    sample_name = [&samples = *work.samples.front()](std::int64_t sample) { return samples.where(sample); };
  work.writer = make_prediction_writer(
      work.ending, *work.file,
      {.heads = work.heads,
       .samples = work.samples.front()->size(),
       .global_step = work.members.front().found.header.global_step,
       .checkpoint = fmt::format("{}", fmt::join(checkpoints, "\n")),
       .checkpoint_digest = fmt::format("{}", fmt::join(digests, "\n")),
       .input = work.standard_input ? "standard input" : fmt::format("{}", fmt::join(paths, "\n")),
       .sample_name = std::move(sample_name)});
  work.offsets = work.writer->offsets();
}

void describe_outputs(Work& work) {
  RunContext& context = work.first();
  work.labels.emplace(*work.samples.front(), context.train_data(), *context.model().heads);
  const PredictionStream& stream = *work.streams.front();
  const std::vector<std::string>& layers = work.arguments.layers;
  for (std::size_t i = 0; i < layers.size(); ++i)
    work.heads.push_back(describe(layers[i], stream.shape(static_cast<int>(i)), layers.size() == 1));
  if (!layers.empty()) return;
  const Heads& heads = *context.model().heads;
  for (int head = 0; head < heads.size(); ++head) {
    work.heads.push_back(describe(heads[head], context.train_data().class_names()));
    work.labels->describe(head, work.heads.back());
  }
}

/// The input's data sets on all ranks, and the open output. All ranks. Several ranks share the work of a file
/// with fixed places for rows.
void open_files(Work& work) {
  Communicator& world = work.world();
  std::vector<std::string> paths;
  bool all_ranks_write = false;
  shared([&] {
    if (is_standard_input(work.arguments.inputs.front())) {
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
        world, [&] { read_samples(work, paths); }, "reading the input");
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
          for (std::size_t m = 0; m < work.members.size(); ++m)
            work.streams.push_back(std::make_unique<PredictionStream>(
                *work.members[m].context, work.samples[m],
                PredictionChoice{.batch_size = work.targets.front().target.config.train.batch_size,
                                 .layers = work.arguments.layers,
                                 .collects = !all_ranks_write}));
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
        [&] { work.part = std::make_unique<PredictionPart>(work.shared_path, work.heads, work.offsets); },
        "opening the output");
  });
}

/// The rows of all outputs for one batch. Not collective.
void write_batch(Work& work, std::vector<std::vector<float>>& means) {
  const PredictionStream& first = *work.streams.front();
  const bool own_rows = work.part != nullptr;
  const Range samples = own_rows ? first.own() : Range{0, first.count()};
  if (samples.size() == 0) return;
  work.labels->gather(first.batch(), samples);
  std::vector<PredictedRows> rows(work.heads.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int head = static_cast<int>(i);
    std::vector<std::span<const float>> of_members;
    for (const auto& stream : work.streams)
      of_members.push_back(own_rows ? stream->own_rows(head) : stream->rows(head));
    rows[i].outputs = of_members.front();
    if (work.is_ensemble()) {
      average_rows((*work.first().model().heads)[head].loss->predictions(), of_members, means[i]);
      rows[i].outputs = means[i];
    }
    if (work.arguments.layers.empty()) work.labels->set(head, rows[i]);
  }
  if (own_rows)
    work.part->add(first.first() + samples.first, samples.size(), rows);
  else
    work.writer->add(samples.size(), rows);
}

/// Predicts all samples. All ranks.
void predict_all(Work& work) {
  std::vector<std::vector<float>> means(work.heads.size());
  for (;;) {
    bool more = false;
    for (const auto& stream : work.streams) more = stream->next();
    if (!more) return;
    // A full disk ends the command on all ranks, after the batch that no longer fits.
    shared([&] {
      agree(
          work.world(),
          [&] {
            if (work.part || work.writer) write_batch(work, means);
          },
          "writing the predictions");
    });
  }
}

void close_files(Work& work) {
  shared([&] {
    agree(
        work.world(),
        [&] {
          if (work.part) work.part->finish();
        },
        "writing the predictions");
    agree(
        work.world(),
        [&] {
          if (!work.writer) return;
          work.writer->finish();
          work.file->publish();
        },
        "writing the predictions");
  });
}

int predict(CommEnvironment& environment, Work work) {
  // The model's input shape is that of the data it was trained on.
  for (const MemberTarget& target : work.targets)
    work.members.push_back(open_member(environment, target, {.train = true}, work.arguments.run.averages));
  shared([&] { check_same_heads(work.members, work.targets); });
  open_files(work);
  predict_all(work);
  close_files(work);
  const std::int64_t samples = work.samples.front()->size();
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
  Work work{.arguments = arguments, .targets = targets};
  work.ending = output_ending(arguments.output, prediction_endings());  // before anything is read
  for (MemberTarget& member : targets) {
    Config& config = member.target.config;
    DataOptions input =
        options_of_input(config, arguments.inputs, arguments.input_format, arguments.input_options);
    if (is_standard_input(arguments.inputs.front())) {
      try_data_on_chief(config);
    } else {
      std::swap(config.data, input);
      const std::vector<std::vector<std::string>> files = files_by_input(config.data, arguments.inputs);
      try_data_on_chief(config, files);
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

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep predict`: the model's outputs for the samples of files. Rank 0 writes batch by batch; the format
// is chosen by the ending of --output (io/prediction_file.h).
#include "driver/commands/commands.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "comm/agree.h"
#include "comm/startup_check.h"
#include "core/log.h"
#include "data/data_files.h"
#include "data/reader_table.h"
#include "driver/commands/predict_files.h"
#include "driver/commands/print_result.h"
#include "driver/commands/true_labels.h"
#include "driver/estimator/prediction_stream.h"
#include "driver/launch.h"
#include "driver/setup/data_trial.h"
#include "driver/setup/run_context.h"
#include "driver/setup/run_directory.h"
#include "io/prediction_file.h"
#include "session/run_vocabulary.h"

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

/// On rank 0; empty on others.
struct Writing {
  std::unique_ptr<OutputFile> file;
  std::unique_ptr<PredictionWriter> writer;
  std::optional<TrueLabels> labels;
};

/// Reads the samples of one input.
std::unique_ptr<Dataset> read_one(const DataInput& input, const Dataset& trained,
                                  const std::vector<std::string>& paths, bool labels, const DatasetUse& use,
                                  const std::string& base_directory) {
  const InputRequest request{.paths = paths,
                             .feature_shape = trained.stored_shape(),
                             .text = trained.text(),
                             .table = trained.table(),
                             .class_names = trained.class_names(),
                             .labels = labels};
  auto data = open_input(input.format, input.train, request, use);
  if (const Normalization* values = trained.normalization()) data->normalize(*values);
  data->set_whitening(trained.whiten_by());
  data->set_transforms(TransformList(input.eval.value_or(input.train), base_directory), false);
  if (const Whitening* values = trained.whitening()) data->whiten(*values);
  return data;
}

/// Reads the samples; `files` by input. If only their labels cannot be read, the error says so. Not
/// collective.
std::unique_ptr<Dataset> read_input(const DataOptions& options, const Dataset& trained,
                                    const std::vector<std::vector<std::string>>& files, bool labels,
                                    int ranks_on_host, const std::string& base_directory) {
  const std::vector<const DataInput*> sets = sets_of(options);
  const DatasetUse use{.ranks_on_host = ranks_on_host, .inputs = static_cast<int>(sets.size())};
  const auto open = [&](bool with_labels) {
    if (trained.inputs().empty())
      return read_one(options, trained, files[0], with_labels, use, base_directory);
    std::vector<JoinedInput> inputs, targets;
    const std::size_t count = trained.inputs().size();
    for (std::size_t i = 0; i < count; ++i)
      inputs.push_back(
          {sets[i]->name, read_one(*sets[i], *trained.inputs()[i].data, files[i],
                                   with_labels && trained.labels_come_from(i), use, base_directory)});
    for (std::size_t i = count; i < sets.size() && with_labels && !files[i].empty(); ++i)
      targets.push_back({sets[i]->name, read_one(*sets[i], *trained.targets()[i - count].data, files[i],
                                                 false, use, base_directory)});
    return Dataset::join(std::move(inputs), std::move(targets));
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

/// Rank 0, with to.file open.
void start_writing(RunContext& context, std::string_view ending, const FoundCheckpoint& found,
                   const std::vector<std::string>& paths, const Dataset& input, Writing& to) {
  const Heads& heads = *context.model().heads;
  PredictionInfo info{.samples = input.size(),
                      .global_step = found.header.global_step,
                      .checkpoint = found.path,
                      .checkpoint_digest = found.header.digest,
                      .input = fmt::format("{}", fmt::join(paths, "\n"))};
  to.labels.emplace(input, context.train_data(), heads);
  for (int head = 0; head < heads.size(); ++head) {
    info.heads.push_back(describe(heads[head], context.train_data().class_names()));
    to.labels->describe(head, info.heads.back());
  }
  to.writer = make_prediction_writer(ending, *to.file, std::move(info));
}

/// Predicts all samples. All ranks; rank 0 writes.
void predict_all(RunContext& context, const Dataset& input, std::int64_t batch_size, Writing& to) {
  PredictionStream predictions(context, input, batch_size);
  const int heads = context.model().heads->size();
  std::vector<PredictedRows> rows(static_cast<std::size_t>(heads));
  while (predictions.next())
    // A full disk ends the command on all ranks, after the batch that no longer fits.
    shared([&] {
      agree(
          context.world(),
          [&] {
            if (!to.writer) return;
            to.labels->gather(predictions.batch());
            for (int head = 0; head < heads; ++head) {
              PredictedRows& own = rows[static_cast<std::size_t>(head)];
              own.outputs = predictions.rows(head);
              to.labels->set(head, own);
            }
            to.writer->add(predictions.count(), rows);
          },
          "writing the predictions");
    });
}

/// The files of the command, the input's data set on all ranks, and the open output on rank 0. All ranks.
std::unique_ptr<Dataset> open_files(RunContext& context, const PredictArguments& arguments,
                                    const RunTarget& target, const FoundCheckpoint& found, Writing& to) {
  const std::string_view ending = output_ending(arguments.output, prediction_endings());
  std::unique_ptr<Dataset> input;
  shared([&] {
    agree(
        context.world(),
        [&] {
          const DataOptions& data = target.config.data;
          std::vector<std::vector<std::string>> files = files_by_input(data, arguments.inputs);
          std::vector<std::string> paths;  // of all inputs
          for (std::size_t i = 0; i < files.size(); ++i) {
            if (files[i].empty()) continue;
            files[i] = find_reader(sets_of(data)[i]->format).reads_folders ? files_and_folders(files[i], "")
                                                                           : data_files(files[i], "");
            for (const std::string& file : files[i])
              if (std::ranges::find(paths, file) == paths.end()) paths.push_back(file);
          }
          if (context.is_chief()) {
            std::vector<std::string> inputs = paths;
            inputs.insert(inputs.end(), {found.path, target.run_dir + "/config.yaml"});
            to.file = std::make_unique<OutputFile>(arguments.output, inputs);
            check_vocabulary(target.run_dir, context.train_data());
          }
          input =
              read_input(data, context.train_data(), files, holds_labels(ending) && !arguments.ignore_labels,
                         context.ranks_on_host(), context.config().base_directory);
          if (context.is_chief()) start_writing(context, ending, found, paths, *input, to);
        },
        "reading the input");
    const NamedText same[] = {{"input", input->fingerprint()}};
    require_same(context.world(), same);
  });
  return input;
}

int predict(CommEnvironment& environment, const PredictArguments& arguments, const RunTarget& target) {
  Communicator& world = environment.world();
  const FoundCheckpoint found = shared([&] {
    FoundCheckpoint checkpoint = find_checkpoint(world, target.run_dir, arguments.run.checkpoint);
    if (!checkpoint.exists())
      throw Error(ErrorKind::checkpoint, "there is no checkpoint to predict with", target.run_dir,
                  "Train first, or name one with --checkpoint.");
    return checkpoint;
  });
  // The model's input shape is that of the data it was trained on.
  RunContext context(environment, target.config, found.header.shards,
                     {.train = true, .kept_in = target.run_dir});
  shared([&] { restore_variables(world, found, *context.model().variables, arguments.run.averages); });
  Writing to;
  const std::unique_ptr<Dataset> input = open_files(context, arguments, target, found, to);
  predict_all(context, *input, target.config.train.batch_size, to);
  shared([&] {
    agree(
        world,
        [&] {
          if (!to.writer) return;
          to.writer->finish();
          to.file->publish();
        },
        "writing the predictions");
  });
  if (context.is_chief() && is_standard_output(arguments.output))
    log_info("{} predictions of step {} written to standard output", input->size(), found.header.global_step);
  else if (context.is_chief())
    print_result("{} predictions of step {} written to {}\n", input->size(), found.header.global_step,
                 arguments.output);
  return 0;
}

}  // namespace

int run_command(const PredictArguments& arguments) {
  RunTarget target = resolve_target(arguments.run);
  output_ending(arguments.output, prediction_endings());  // before anything is read
  try_data_on_chief(target.config, files_by_input(target.config.data, arguments.inputs));
  return run_on_ranks({target.config.comm.timeout_seconds, target.config.comm.start_timeout_seconds},
                      arguments.run.quiet,
                      [&](CommEnvironment& environment) { return predict(environment, arguments, target); });
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep predict`: the model's outputs for the samples of a file.
#include "driver/commands/commands.h"

#include <algorithm>
#include <filesystem>

#include "comm/agree.h"
#include "data/reader_table.h"
#include "driver/launch.h"
#include "driver/setup/run_context.h"
#include "driver/setup/run_directory.h"
#include "io/atomic_file.h"
#include "session/run_vocabulary.h"
#include "train/dataset_batch_source.h"
#include "train/predictor.h"

namespace lockstep {

namespace {

/// How a head's rows are written: the class of the largest prediction for a head with classes (of each
/// position), then all predictions.
struct HeadColumns {
  HeadColumns(const Head& of, int head_number)
      : head(of),
        number(head_number),
        values(of.shape.num_elements()),
        classes(of.loss->has_classes() ? of.shape.last() : 0) {}

  std::string name(std::string_view column) const {
    return head.name.empty() ? std::string(column) : fmt::format("{}/{}", head.name, column);
  }
  void append_header(std::string& text) const {
    const std::int64_t positions = classes > 0 ? values / classes : 0;
    for (std::int64_t p = 0; p < positions; ++p)
      text += name(positions == 1 ? "class" : fmt::format("class{}", p)) + ",";
    for (std::int64_t i = 0; i < values; ++i)
      text += name(fmt::format("{}{}", classes > 0 ? "p" : "y", i)) + (i + 1 == values ? "" : ",");
  }
  void append_row(std::string& text, const float* row) const {
    for (const float* position = row; classes > 0 && position != row + values; position += classes)
      text += std::to_string(std::max_element(position, position + classes) - position) + ",";
    for (std::int64_t i = 0; i < values; ++i) text += fmt::format("{}{}", row[i], i + 1 == values ? "" : ",");
  }

  const Head& head;
  int number;
  std::int64_t values, classes;
};

/// Predicts all samples; rank 0 gets the text of the file. All ranks.
std::string prediction_text(RunContext& context, const Dataset& input, std::int64_t batch_size) {
  const ExecutorContext executor = context.executor_context();
  const StepPlan plan(
      {.num_samples = input.size(), .batch_size = batch_size, .shards = executor.shards, .shuffle = false});
  const std::vector<std::int64_t> sizes = plan.distinct_shard_sizes();
  Predictor predictor(executor, {.max_samples = batch_size, .sample_counts = sizes});
  DatasetBatchSource source(input, plan, executor.pool.size(), predictor.num_slots());
  context.workers().grow_scratch(predictor.scratch_bytes());
  predictor.refresh_weights();

  std::vector<HeadColumns> heads;
  std::string text;
  for (const Head& head : executor.heads) {
    if (!heads.empty()) text += ",";
    heads.emplace_back(head, static_cast<int>(heads.size()));
    heads.back().append_header(text);
  }
  text += "\n";
  for (Cursor cursor; cursor.epoch == 0; cursor = plan.advance(cursor)) {
    const Batch batch = plan.batch(cursor);
    predictor.run(source, batch);
    predictor.collect(context.world(), source, batch);
    for (std::int64_t i = 0; context.is_chief() && i < batch.count; ++i)
      for (const HeadColumns& head : heads) {
        head.append_row(text, predictor.rows(head.number).data() + i * head.values);
        text += &head == &heads.back() ? "\n" : ",";
      }
  }
  return text;
}

}  // namespace

int run_command(const PredictArguments& arguments) {
  const RunTarget target = resolve_target(arguments.run);
  return run_on_ranks(
      target.config.comm.timeout_seconds, arguments.run.quiet, [&](CommEnvironment& environment) {
        Communicator& world = environment.world();
        const FoundCheckpoint found = shared([&] {
          FoundCheckpoint checkpoint = find_checkpoint(world, target.run_dir, arguments.run.checkpoint);
          if (!checkpoint.exists())
            throw Error(ErrorKind::checkpoint, "there is no checkpoint to predict with", target.run_dir,
                        "Train first, or name one with --checkpoint.");
          return checkpoint;
        });
        // The model's input shape is that of the data it was trained on.
        RunContext context(environment, target.config, found.header.shards, true, false);
        shared([&] { restore_state(world, found, *context.model().variables, nullptr); });
        std::unique_ptr<Dataset> input;
        shared([&] {
          agree(
              world,
              [&] {
                const std::filesystem::path folder =
                    std::filesystem::absolute(arguments.output).parent_path();
                if (world.rank() == 0 && !std::filesystem::is_directory(folder))
                  throw Error(ErrorKind::config,
                              fmt::format("cannot be written: there is no folder {}", folder.string()),
                              arguments.output, "Make the folder, or choose another --output.");
                if (world.rank() == 0) check_vocabulary(target.run_dir, context.train_data());
                input =
                    open_features(target.config.data.format, target.config.data.train, ".", arguments.input,
                                  context.train_data().feature_shape(), context.train_data().text());
              },
              "reading the input");
        });
        const std::string text = prediction_text(context, *input, target.config.train.batch_size);
        shared([&] {
          agree(
              world,
              [&] {
                if (world.rank() == 0) write_file_atomically(arguments.output, text);
              },
              "writing the predictions");
        });
        if (context.is_chief())
          fmt::print("{} predictions of step {} written to {}\n", input->size(), found.header.global_step,
                     arguments.output);
        return 0;
      });
}

}  // namespace lockstep

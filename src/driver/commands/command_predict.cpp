// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/commands/command_predict.h"

#include <algorithm>
#include <filesystem>

#include "comm/agree.h"
#include "data/reader_table.h"
#include "driver/commands/command_sample.h"
#include "driver/launch.h"
#include "driver/setup/run_context.h"
#include "driver/setup/run_directory.h"
#include "io/atomic_file.h"
#include "session/run_vocabulary.h"
#include "train/batch_source.h"
#include "train/executor.h"

namespace lockstep {

namespace {

/// One head's rows of a batch, and how they are written: the class of the largest output for a head with
/// classes (of each position), then all outputs.
struct HeadRows {
  HeadRows(const Head& judged, Device& device, std::int64_t batch_size)
      : head(judged),
        outputs(head.shape.num_elements()),
        classes(head.loss->has_classes() ? head.shape.last() : 0),
        rows(static_cast<std::size_t>(batch_size * outputs)),
        on_device(device, rows.size() * sizeof(float)) {}

  std::string name(std::string_view column) const {
    return head.name.empty() ? std::string(column) : fmt::format("{}/{}", head.name, column);
  }
  void append_header(std::string& text) const {
    const std::int64_t positions = classes > 0 ? outputs / classes : 0;
    for (std::int64_t p = 0; p < positions; ++p)
      text += name(positions == 1 ? "class" : fmt::format("class{}", p)) + ",";
    for (std::int64_t i = 0; i < outputs; ++i)
      text += name(fmt::format("{}{}", classes > 0 ? "p" : "y", i)) + (i + 1 == outputs ? "" : ",");
  }
  void append_row(std::string& text, std::int64_t sample) const {
    const float* row = rows.data() + sample * outputs;
    for (const float* position = row; classes > 0 && position != row + outputs; position += classes)
      text += std::to_string(std::max_element(position, position + classes) - position) + ",";
    for (std::int64_t i = 0; i < outputs; ++i)
      text += fmt::format("{}{}", row[i], i + 1 == outputs ? "" : ",");
  }

  const Head& head;
  std::int64_t outputs, classes;
  std::vector<float> rows;
  Buffer on_device;
};

/// Every rank has the rows of its consecutive shards; the chief collects them.
void collect(HeadRows& head, const ExecutorContext& context, Communicator& world, const StepPlan& plan,
             std::int64_t count) {
  context.device.copy_to_host(head.rows.data(), head.on_device.data(), head.on_device.size_bytes());
  for (int rank = 1; rank < world.size(); ++rank) {
    const Range shards = shards_of_rank(rank, world.size(), context.shards);
    const std::int64_t first = plan.shard_range(count, shards.first).first,
                       last = plan.shard_range(count, shards.last - 1).last;
    float* rows = head.rows.data() + first * head.outputs;
    const auto bytes = static_cast<std::size_t>((last - first) * head.outputs) * sizeof(float);
    if (world.rank() == 0) world.receive(rows, bytes, rank, "predictions");
    if (world.rank() == rank) world.send(rows, bytes, 0, "predictions");
  }
}

}  // namespace

int command_predict(const CommandLine& line) {
  if (line.prompt) return command_sample(line);
  const RunTarget target = resolve_target(line);
  return run_on_ranks(target.config.comm.timeout_seconds, line.quiet, [&](CommEnvironment& environment) {
    Communicator& world = environment.world();
    const FoundCheckpoint found = shared([&] {
      FoundCheckpoint checkpoint = find_checkpoint(world, target.run_dir, line.checkpoint);
      if (!checkpoint.exists())
        throw Error(ErrorKind::checkpoint, "there is no checkpoint to predict with", target.run_dir,
                    "Train first, or name one with --checkpoint.");
      return checkpoint;
    });
    // The model's input shape is that of the data it was trained on.
    RunContext session(environment, target.config, found.header.shards, true, false);
    shared([&] { restore_state(world, found, *session.model().variables, nullptr); });
    std::unique_ptr<Dataset> input;
    shared([&] {
      agree(
          world,
          [&] {
            const std::filesystem::path folder = std::filesystem::absolute(line.output).parent_path();
            if (world.rank() == 0 && !std::filesystem::is_directory(folder))
              throw Error(ErrorKind::config,
                          fmt::format("cannot be written: there is no folder {}", folder.string()),
                          line.output, "Make the folder, or choose another --output.");
            if (world.rank() == 0) check_vocabulary(target.run_dir, session.train_data());
            input = open_features(target.config.data.format, target.config.data.train, ".", line.input,
                                  session.train_data().feature_shape(), session.train_data().text());
          },
          "reading the input");
    });
    const ExecutorContext context = session.executor_context();
    const StepPlan plan({.num_samples = input->size(),
                         .batch_size = target.config.train.batch_size,
                         .shards = session.shards(),
                         .shuffle = false});
    Executor executor(context, false, plan.distinct_shard_sizes());
    BatchSource source(*input, plan, context.pool.size(), executor.num_slots());
    session.workers().grow_scratch(executor.scratch_bytes());
    executor.refresh_weights();

    std::vector<HeadRows> heads;
    heads.reserve(static_cast<std::size_t>(context.heads.size()));
    std::string text;
    for (const Head& head : context.heads) {
      heads.emplace_back(head, context.device, plan.spec().batch_size);
      if (heads.size() > 1) text += ",";
      heads.back().append_header(text);
    }
    text += "\n";
    for (Cursor cursor; cursor.epoch == 0; cursor = plan.advance(cursor)) {
      const Batch batch = plan.batch(cursor);
      auto extent = [&](int shard) { return source.extent(batch, shard); };
      auto fetch = [&](const Microshard& m, int lane, int slot, float* features) {
        return source.fetch(batch, m, lane, slot, features);
      };
      auto done = [](const Microshard&, std::span<const HeadSums>) {};
      auto predict = [&](const MicroshardOutputs& given) {
        for (std::size_t i = 0; i < heads.size(); ++i)
          heads[i].head.loss->predict(
              context.kernels, context.device, given.lane, given.microshard.n, heads[i].head.shape,
              given.outputs[i],
              heads[i].on_device.as<float>().data() + given.microshard.first_sample * heads[i].outputs);
      };
      executor.run({.count = batch.count,
                    .extent = extent,
                    .fetch = fetch,
                    .done = done,
                    .outputs = BatchView::Outputs(predict)});
      for (HeadRows& head : heads) collect(head, context, world, plan, batch.count);
      for (std::int64_t i = 0; world.rank() == 0 && i < batch.count; ++i)
        for (const HeadRows& head : heads) {
          head.append_row(text, i);
          text += &head == &heads.back() ? "\n" : ",";
        }
    }
    shared([&] {
      agree(
          world,
          [&] {
            if (world.rank() == 0) write_file_atomically(line.output, text);
          },
          "writing the predictions");
    });
    if (session.is_chief())
      fmt::print("{} predictions of step {} written to {}\n", input->size(), found.header.global_step,
                 line.output);
    return 0;
  });
}

}  // namespace lockstep

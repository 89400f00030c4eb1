// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/command_predict.h"

#include <algorithm>
#include <filesystem>

#include "comm/agree.h"
#include "driver/batch_source.h"
#include "driver/command_sample.h"
#include "driver/executor.h"
#include "driver/launch.h"
#include "driver/run_directory.h"
#include "driver/run_vocabulary.h"
#include "driver/session.h"
#include "io/atomic_file.h"
#include "io/readers.h"

namespace lockstep {

namespace {

/// CSV with a header: the class of the largest output, then all outputs.
std::string header_line(std::int64_t outputs) {
  std::string text = "class";
  for (std::int64_t i = 0; i < outputs; ++i) text += fmt::format(",p{}", i);
  return text + "\n";
}

void append_rows(std::string& text, const float* rows, std::int64_t n, std::int64_t outputs) {
  for (const float* row = rows; row != rows + n * outputs; row += outputs) {
    text += std::to_string(std::max_element(row, row + outputs) - row);
    for (std::int64_t i = 0; i < outputs; ++i) text += fmt::format(",{}", row[i]);
    text += '\n';
  }
}

}  // namespace

int command_predict(const CommandLine& line) {
  if (line.prompt) return command_sample(line);
  const RunTarget target = resolve_target(line);
  return run_on_ranks(comm_timeout_seconds(target.config), line.quiet, [&](CommEnvironment& environment) {
    Communicator& world = environment.world();
    const FoundCheckpoint found = shared([&] {
      FoundCheckpoint checkpoint = find_checkpoint(world, target.run_dir, line.checkpoint);
      if (!checkpoint.exists())
        throw Error(ErrorKind::checkpoint, "there is no checkpoint to predict with", target.run_dir,
                    "Train first, or name one with --checkpoint.");
      return checkpoint;
    });
    // The model's input shape is that of the data it was trained on.
    Session session(environment, target.config, found.header.shards, true, false);
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
            const std::string format = data_format(target.config.data);
            const Params options(split_options(target.config.data, "train"), find_reader(format).table,
                                 "section data");
            if (world.rank() == 0) check_vocabulary(target.run_dir, session.train_data());
            input = open_features(format, options, ".", line.input, session.train_data().feature_shape(),
                                  session.train_data().text());
          },
          "reading the input");
    });
    const ExecutorContext context = session.executor_context();
    const StepPlan plan({.num_samples = input->size(),
                         .batch_size = target.config.train.integer("batch_size"),
                         .shards = session.shards(),
                         .shuffle = false});
    Executor executor(context, false, plan.distinct_shard_sizes());
    BatchSource source(*input, plan, context.pool.size(), executor.num_slots());
    session.workers().grow_scratch(executor.scratch_bytes());
    executor.refresh_weights();

    const std::int64_t outputs = session.model().graph->output().num_elements();
    std::vector<float> batch_rows(static_cast<std::size_t>(plan.spec().batch_size * outputs));
    const Buffer rows_on_device(context.device, batch_rows.size() * sizeof(float));
    std::string text = header_line(outputs);
    for (Cursor cursor; cursor.epoch == 0; cursor = plan.advance(cursor)) {
      const Batch batch = plan.batch(cursor);
      auto extent = [&](int shard) { return source.extent(batch, shard); };
      auto fetch = [&](const Microshard& m, int lane, int slot, float* features) {
        return source.fetch(batch, m, lane, slot, features);
      };
      auto done = [](const Microshard&, const LossSums&) {};
      auto predict = [&](const Microshard& m, const Lane& lane, const float* values) {
        session.model().loss->predict(context.kernels, lane, m.n, session.model().graph->output(), values,
                                      rows_on_device.as<float>().data() + m.first_sample * outputs);
      };
      executor.run({.count = batch.count,
                    .extent = extent,
                    .fetch = fetch,
                    .done = done,
                    .outputs = BatchView::Outputs(predict)});
      context.device.copy_to_host(batch_rows.data(), rows_on_device.data(), rows_on_device.size_bytes());
      // Every rank has the rows of its consecutive shards; the chief collects them.
      for (int rank = 1; rank < world.size(); ++rank) {
        const Range shards = shards_of_rank(rank, world.size(), session.shards());
        const std::int64_t first = plan.shard_range(batch.count, shards.first).first,
                           last = plan.shard_range(batch.count, shards.last - 1).last;
        float* rows = batch_rows.data() + first * outputs;
        const auto bytes = static_cast<std::size_t>((last - first) * outputs) * sizeof(float);
        if (world.rank() == 0) world.receive(rows, bytes, rank, "predictions");
        if (world.rank() == rank) world.send(rows, bytes, 0, "predictions");
      }
      if (world.rank() == 0) append_rows(text, batch_rows.data(), batch.count, outputs);
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

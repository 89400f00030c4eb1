// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/predictor.h"

namespace lockstep {

Predictor::Predictor(const ExecutorContext& context, const Options& options)
    : context_(context), values_(options.values), executor_(context, false, options.sample_counts) {
  for (const Head& head : context.heads) {
    const std::int64_t values = head.shape.num_elements();
    HeadRows& rows = heads_.emplace_back();
    rows.values_per_sample = values;
    rows.rows.resize(static_cast<std::size_t>(options.max_samples * values));
    rows.on_device = Buffer(context.device, rows.rows.size() * sizeof(float));
  }
}

void Predictor::take(const MicroshardOutputs& given) {
  const Microshard& microshard = given.microshard;
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    const HeadRows& rows = heads_[i];
    const Head& head = context_.heads[static_cast<int>(i)];
    float* const to = rows.on_device.as<float>().data() + microshard.first_sample * rows.values_per_sample;
    if (values_ == Values::predictions)
      head.loss->predict(context_.kernels, context_.device, given.lane, microshard.n, head.shape,
                         given.outputs[i], to);
    else
      context_.device.copy(given.lane.stream, to, given.outputs[i],
                           static_cast<std::size_t>(microshard.n * rows.values_per_sample) * sizeof(float));
  }
}

void Predictor::run(BatchSource& source, const Batch& batch) {
  executor_.run({.source = source, .batch = batch, .outputs = this});
  for (HeadRows& head : heads_)
    context_.device.copy_to_host(head.rows.data(), head.on_device.data(), head.on_device.size_bytes());
}

// A rank's shards follow one another, and so do their samples.
void Predictor::collect(Communicator& world, const BatchSource& source, const Batch& batch) {
  for (HeadRows& head : heads_)
    for (int rank = 1; rank < world.size(); ++rank) {
      const Range shards = shards_of_rank(rank, world.size(), context_.shards);
      if (shards.size() == 0) continue;
      const Microshard last = source.extent(batch, static_cast<int>(shards.last) - 1);
      const std::int64_t first = source.extent(batch, static_cast<int>(shards.first)).first_sample;
      const std::int64_t values = (last.first_sample + last.n - first) * head.values_per_sample;
      float* const rows = head.rows.data() + first * head.values_per_sample;
      const std::size_t bytes = static_cast<std::size_t>(values) * sizeof(float);
      if (world.rank() == 0) world.receive(rows, bytes, rank, "predictions");
      if (world.rank() == rank) world.send(rows, bytes, 0, "predictions");
    }
}

}  // namespace lockstep

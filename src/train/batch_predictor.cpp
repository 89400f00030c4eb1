// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/batch_predictor.h"

#include <algorithm>

#include "core/range.h"

namespace lockstep {

BatchPredictor::BatchPredictor(const ExecutorContext& context, const Options& options)
    : context_(context), values_(options.values), executor_(context, false, options.sample_counts) {
  for (const Graph::Source& layer : options.layers) add_layer(layer, options);
  if (!layers_.empty()) {
    executor_.observe(this);
    return;
  }
  for (const Head& head : context.heads) add_rows(head.shape.num_elements(), options.max_samples);
}

void BatchPredictor::add_rows(std::int64_t values, std::int64_t max_samples) {
  HeadRows& rows = heads_.emplace_back();
  rows.values_per_sample = values;
  rows.rows.resize(static_cast<std::size_t>(max_samples * values));
  rows.on_device = Buffer(context_.device, rows.rows.size() * sizeof(float));
}

void BatchPredictor::add_layer(Graph::Source layer, const Options& options) {
  const Graph::Calls& calls = executor_.calls();
  const int value =
      calls.node_values[static_cast<std::size_t>(layer.node)][static_cast<std::size_t>(layer.output)];
  const int operation = calls.values[static_cast<std::size_t>(value)].producer;
  LOCKSTEP_REQUIRE(operation >= 0, ErrorKind::usage,
                   "the outputs of {} are the features; name a layer that computes something",
                   context_.graph.nodes()[static_cast<std::size_t>(layer.node)].layer->name());
  const auto& outputs = calls.operations[static_cast<std::size_t>(operation)].outputs;
  LayerPlace& place = layers_.emplace_back(
      LayerPlace{operation, static_cast<int>(std::ranges::find(outputs, value) - outputs.begin()), {}});
  const std::int64_t values = context_.graph.shape(layer).num_elements();
  add_rows(values, options.max_samples);
  std::int64_t most = 0;
  for (const std::int64_t count : options.sample_counts) most = std::max(most, count);
  for (int worker = 0; worker < executor_.num_lanes(); ++worker)
    place.widened.emplace_back(context_.device, static_cast<std::size_t>(most * values) * sizeof(float));
}

void BatchPredictor::forward(int operation, const Pass& pass) {
  const auto worker = static_cast<std::size_t>(pass.lane.index);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const LayerPlace& layer = layers_[i];
    if (layer.operation != operation) continue;
    const std::int64_t values = heads_[i].values_per_sample, count = pass.n * values;
    ConstData outputs = pass.outputs[layer.output];
    if (outputs.type() != DType::f32) {
      const Data wide(layer.widened[worker].as<float>().data());
      context_.kernels.elementwise.convert(pass.lane, count, outputs, wide);
      outputs = wide;
    }
    context_.device.copy(pass.lane.stream,
                         heads_[i].on_device.as<float>().data() + pass.first_sample * values, outputs.f32(),
                         static_cast<std::size_t>(count) * sizeof(float));
  }
}

void BatchPredictor::take(const MicroshardOutputs& given) {
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

void BatchPredictor::run(BatchSource& source, const Batch& batch) {
  executor_.run({.source = source, .batch = batch, .outputs = layers_.empty() ? this : nullptr});
  for (HeadRows& head : heads_)
    context_.device.copy_to_host(head.rows.data(), head.on_device.data(), head.on_device.size_bytes());
}

// A rank's shards follow one another, and so do their samples.
Range BatchPredictor::own_samples(const BatchSource& source, const Batch& batch, int rank, int ranks) const {
  const Range shards = shards_of_rank(rank, ranks, context_.shards);
  if (shards.size() == 0) return {0, 0};
  const Microshard last = source.extent(batch, static_cast<int>(shards.last) - 1);
  return {source.extent(batch, static_cast<int>(shards.first)).first_sample, last.first_sample + last.n};
}

void BatchPredictor::collect(Communicator& world, const BatchSource& source, const Batch& batch) {
  for (HeadRows& head : heads_)
    for (int rank = 1; rank < world.size(); ++rank) {
      const Range own = own_samples(source, batch, rank, world.size());
      if (own.size() == 0) continue;
      float* const rows = head.rows.data() + own.first * head.values_per_sample;
      const std::size_t bytes = static_cast<std::size_t>(own.size() * head.values_per_sample) * sizeof(float);
      if (world.rank() == 0) world.receive(rows, bytes, rank, "predictions");
      if (world.rank() == rank) world.send(rows, bytes, 0, "predictions");
    }
}

}  // namespace lockstep

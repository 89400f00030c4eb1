// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/evaluation.h"

#include <algorithm>

namespace lockstep {

namespace {
StepPlan evaluation_plan(const Dataset& dataset, std::int64_t batch_size, int shards) {
  return StepPlan(
      {.num_samples = dataset.size(), .batch_size = batch_size, .shards = shards, .shuffle = false});
}
}  // namespace

Evaluation::Evaluation(ExecutorContext context, Communicator& control, const Dataset& dataset,
                       std::int64_t batch_size)
    : plan_(evaluation_plan(dataset, batch_size, context.shards)),
      executor_(context, false, plan_.distinct_shard_sizes()),
      source_(dataset, plan_, context.pool.size(), executor_.num_slots()),
      sums_(control, context.shards, 0, 2),
      ranks_(control.size()) {
  sums_.set_rank_words(1);
}

EvaluationResult Evaluation::run(FunctionRef<double()> word) {
  executor_.refresh_weights();
  EvaluationResult result;
  double loss = 0, correct = 0;
  for (Cursor cursor; cursor.epoch == 0; cursor = plan_.advance(cursor)) {
    const Batch batch = plan_.batch(cursor);
    auto extent = [&](int shard) { return source_.extent(batch, shard); };
    auto fetch = [&](const Microshard& m, int lane, int slot, float* features) {
      return source_.fetch(batch, m, lane, slot, features);
    };
    auto done = [&](const Microshard& m, const LossSums& sums) {
      double* leaf = sums_.leaf(m.shard);
      leaf[0] = sums.loss;
      leaf[1] = static_cast<double>(sums.correct);
    };
    executor_.run({.count = batch.count, .extent = extent, .fetch = fetch, .done = done});
    sums_.rank_words()[0] = word();
    sums_.reduce("sums of the evaluation");
    for (int rank = 0; rank < ranks_; ++rank)
      result.word = std::max(result.word, sums_.rank_words_of(rank)[0]);
    if (result.word != 0) return {.word = result.word};
    loss += sums_.total(0)[0];
    correct += sums_.total(0)[1];
    result.samples += batch.count;
  }
  result.loss = loss / static_cast<double>(result.samples);
  result.accuracy = correct / static_cast<double>(result.samples);
  return result;
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Forward passes for what the heads, or other layers, say about samples: of a data set (the command predict),
// or of rows that the caller holds (sample).
//
//   BatchPredictor predictor(context, {.max_samples = 64, .sample_counts = plan.distinct_shard_sizes()});
//   workers.grow_scratch(predictor.scratch_bytes());
//   predictor.refresh_weights();
//   predictor.run(source, batch);             // each rank its own microshards
//   predictor.collect(world, source, batch);  // all rows to rank 0
//   predictor.rows(head)                      // max_samples x values of one sample
#pragma once

#include <span>
#include <vector>

#include "core/range.h"
#include "train/executor.h"
#include "train/step_observer.h"

namespace lockstep {

class BatchPredictor final : private OutputSink, private StepObserver {
 public:
  /// predictions: as the head's loss turns outputs into predictions (probabilities for classes). outputs: as
  /// the model computes them.
  enum class Values { predictions, outputs };
  struct Options {
    std::int64_t max_samples = 1;                 ///< of a batch
    std::span<const std::int64_t> sample_counts;  ///< sizes > 0 of the microshards that will occur
    Values values = Values::predictions;
    /// The layers whose outputs are given instead of those of the heads; empty: none. Each has outputs of its
    /// own (Graph::Node::fused_into) and is no input.
    std::vector<Graph::Source> layers = {};
  };
  BatchPredictor(const ExecutorContext& context, const Options& options);

  std::size_t scratch_bytes() const { return executor_.scratch_bytes(); }
  /// Microshards in flight, for a DatasetBatchSource.
  int num_slots() const { return executor_.num_slots(); }
  /// The variables have changed; also before the first run().
  void refresh_weights() { executor_.refresh_weights(); }

  /// Fills the rows of this rank's microshards. No communication, no allocation.
  void run(BatchSource& source, const Batch& batch);
  /// Sends the rows of the last run() to rank 0. All ranks.
  void collect(Communicator& world, const BatchSource& source, const Batch& batch);
  /// The samples of the batch that are in this rank's microshards: positions in the batch.
  Range own_samples(const BatchSource& source, const Batch& batch, int rank, int ranks) const;
  /// The rows by position in the batch, values_per_sample() each. `head`: of the heads, or of
  /// Options::layers.
  std::span<const float> rows(int head) const { return heads_[static_cast<std::size_t>(head)].rows; }
  std::int64_t values_per_sample(int head) const {
    return heads_[static_cast<std::size_t>(head)].values_per_sample;
  }

 private:
  struct HeadRows {
    std::int64_t values_per_sample;
    std::vector<float> rows;
    Buffer on_device;
  };
  struct LayerPlace {
    int operation, output;        ///< of Executor::calls()
    std::vector<Buffer> widened;  ///< by worker: room for a microshard in float32
  };
  void add_rows(std::int64_t values, std::int64_t max_samples);
  void add_layer(Graph::Source layer, const Options& options);
  void take(const MicroshardOutputs& outputs) override;
  void forward(int operation, const Pass& pass) override;

  ExecutorContext context_;
  Values values_;
  Executor executor_;
  std::vector<HeadRows> heads_;
  std::vector<LayerPlace> layers_;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A graph, its variables and everything that runs its training step, without a data set or an update: loss
// and gradients of one batch, divided into microshards of any sizes. All ranks of the communicator create and
// run it with the same arguments.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "comm/gradient_reducer.h"
#include "core/range.h"
#include "train/executor.h"
#include "train/loss_report.h"
#include "train/rows_batch_source.h"
#include "train/workers.h"

namespace lockstep {

class OneStep {
 public:
  /// `sizes`: the number of samples of each microshard of the global batch; there are `shards` of them.
  OneStep(Communicator& world, int threads, std::unique_ptr<Graph> graph, std::unique_ptr<Loss> loss,
          std::vector<std::int64_t> sizes, bool overlap = false)
      : OneStep(world, threads, std::move(graph), Heads(std::move(loss)), std::move(sizes), overlap) {}
  OneStep(Communicator& world, int threads, std::unique_ptr<Graph> graph, Heads heads,
          std::vector<std::int64_t> sizes, bool overlap = false)
      : sizes_(std::move(sizes)),
        graph_(std::move(graph)),
        heads_(std::move(heads)),
        workers_(threads),
        gradients_(world.duplicate("gradients")),
        sync_(world.duplicate("sync")),
        control_(world.duplicate("control")),
        report_(heads_),
        sums_(*control_, static_cast<int>(sizes_.size()), 0, report_.width()) {
    heads_.add_outputs(*graph_);
    graph_->finish(variables_);
    variables_.commit(cpu_device());
    heads_.prepare(*graph_, cpu_device());
    variables_.initialize(5);
    std::vector<std::int64_t> occurring = sizes_;
    std::sort(occurring.begin(), occurring.end());
    occurring.erase(std::unique(occurring.begin(), occurring.end()), occurring.end());
    if (occurring.front() == 0) occurring.erase(occurring.begin());
    executor_ = std::make_unique<Executor>(
        ExecutorContext{*graph_, variables_, heads_, cpu_kernels(), cpu_device(), workers_.pool(),
                        workers_.lanes(), *sync_, nullptr, static_cast<int>(sizes_.size()), 77},
        true, occurring);
    workers_.grow_scratch(executor_->scratch_bytes());
    const std::int64_t elements = variables_.trainable_elements();
    reducer_ = std::make_unique<GradientReducer>(*gradients_, &workers_.pool(),
                                                 static_cast<int>(sizes_.size()), elements,
                                                 make_buckets(elements, variables_.cut_points(), 256, 1024),
                                                 GradientReducerOptions{.overlap = overlap});
    executor_->attach(*reducer_);
    source_ = std::make_unique<RowsBatchSource>(graph_->features().num_elements(), sizes_);
  }

  VariableStore& variables() { return variables_; }
  const Graph& graph() const { return *graph_; }
  const Executor& executor() const { return *executor_; }

  struct Result {
    double loss = 0;      ///< mean over the batch
    double accuracy = 0;  ///< the same
    std::vector<float> gradient;
  };
  /// `features` and `labels` are of the whole batch; each rank uses its own part.
  Result run(const std::vector<float>& features, const std::vector<std::int32_t>& labels,
             std::int64_t step = 3) {
    source_->set(features.data(), {.indices = labels.data()});
    executor_->refresh_weights();
    executor_->train({.source = *source_, .batch = source_->batch(), .step = step}, *reducer_);
    const Range own = executor_->own_shards();
    for (int shard = static_cast<int>(own.first); shard < own.last; ++shard)
      LossReport::fill(executor_->head_sums(shard), sums_.leaf(shard));
    reducer_->wait_all();
    sums_.reduce("loss");
    std::vector<double> parts(report_.names().size());
    const LossReport::Numbers numbers = report_.evaluate(sums_.total(0), parts);
    return {numbers.loss, numbers.accuracy,
            std::vector<float>(reducer_->result(), reducer_->result() + variables_.trainable_elements())};
  }

 private:
  std::vector<std::int64_t> sizes_;
  std::unique_ptr<Graph> graph_;
  Heads heads_;
  VariableStore variables_;
  Workers workers_;
  std::unique_ptr<Communicator> gradients_, sync_, control_;
  LossReport report_;
  SmallSum sums_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<GradientReducer> reducer_;
  std::unique_ptr<RowsBatchSource> source_;
};

}  // namespace lockstep

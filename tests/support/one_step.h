// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A graph, its variables and everything that runs its training step, without a data set or an update: loss
// and gradients of one batch, divided into microshards of any sizes. All ranks of the communicator create and
// run it with the same arguments.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "comm/gradient_reducer.h"
#include "train/executor.h"
#include "train/loss_report.h"
#include "train/workers.h"

namespace lockstep {

class OneStep {
 public:
  /// `sizes`: the number of samples of each microshard of the global batch; there are `shards` of them.
  OneStep(Communicator& world, int threads, std::unique_ptr<Graph> graph, std::unique_ptr<Loss> loss,
          std::vector<std::int64_t> sizes, bool overlap = false)
      : sizes_(std::move(sizes)),
        graph_(std::move(graph)),
        heads_(std::move(loss)),
        workers_(threads),
        gradients_(world.duplicate("gradients")),
        meetings_(world.duplicate("meetings")),
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
                        workers_.lanes(), *meetings_, nullptr, static_cast<int>(sizes_.size()), 77},
        true, occurring);
    workers_.grow_scratch(executor_->scratch_bytes());
    const std::int64_t elements = variables_.trainable_elements();
    reducer_ = std::make_unique<GradientReducer>(*gradients_, &workers_.pool(),
                                                 static_cast<int>(sizes_.size()), elements,
                                                 make_buckets(elements, variables_.cut_points(), 256, 1024),
                                                 GradientReducerOptions{.overlap = overlap});
    executor_->attach(*reducer_);
    labels_.resize(static_cast<std::size_t>(executor_->num_slots()));
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
    const std::int64_t elements = graph_->features().num_elements();
    std::int64_t count = 0;
    for (std::int64_t n : sizes_) count += n;
    auto extent = [&](int shard) {
      std::int64_t first = 0;
      for (int s = 0; s < shard; ++s) first += sizes_[static_cast<std::size_t>(s)];
      return Microshard{shard, first, sizes_[static_cast<std::size_t>(shard)]};
    };
    auto fetch = [&](const Microshard& m, int, int slot, float* to) {
      std::memcpy(to, features.data() + m.first_sample * elements,
                  static_cast<std::size_t>(m.n * elements) * sizeof(float));
      auto& own = labels_[static_cast<std::size_t>(slot)];
      own.assign(labels.begin() + m.first_sample, labels.begin() + m.first_sample + m.n);
      return Labels{.indices = own.data()};
    };
    auto done = [&](const Microshard& m, std::span<const HeadSums> sums) {
      LossReport::fill(sums, sums_.leaf(m.shard));
    };
    executor_->refresh_weights();
    executor_->train({.step = step, .count = count, .extent = extent, .fetch = fetch, .done = done},
                     *reducer_);
    reducer_->wait_all();
    sums_.reduce("loss");
    const LossReport::Numbers numbers = report_.evaluate(sums_.total(0), {});
    return {numbers.loss, numbers.accuracy,
            std::vector<float>(reducer_->result(), reducer_->result() + variables_.trainable_elements())};
  }

 private:
  std::vector<std::int64_t> sizes_;
  std::unique_ptr<Graph> graph_;
  Heads heads_;
  VariableStore variables_;
  Workers workers_;
  std::unique_ptr<Communicator> gradients_, meetings_, control_;
  LossReport report_;
  SmallSum sums_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<GradientReducer> reducer_;
  std::vector<std::vector<std::int32_t>> labels_;
};

}  // namespace lockstep

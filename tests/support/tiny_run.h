// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A whole training run in memory: random samples, a graph from YAML text, an optimizer and a Trainer.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "comm/buckets.h"
#include "comm/communicator.h"
#include "config/yaml_node.h"
#include "core/philox.h"
#include "core/range.h"
#include "data/dataset.h"
#include "data/reader_dataset.h"
#include "data/step_plan.h"
#include "kernels/kernel_table.h"
#include "model/graph.h"
#include "model/heads.h"
#include "model/loss.h"
#include "model/recompute.h"
#include "model/variable_store.h"
#include "optim/optimizer.h"
#include "optim/optimizer_options.h"
#include "train/executor.h"
#include "train/executor_context.h"
#include "train/sparse_gradients.h"
#include "train/trainer.h"
#include "train/trainer_options.h"
#include "train/update_parts.h"
#include "train/workers.h"

namespace lockstep {

struct TinyRunOptions {
  std::string layers;
  std::string optimizer = "adam";
  Shape features{6, 6, 2};
  std::int64_t samples = 60, batch_size = 16;
  int shards = 4, threads = 1, classes = 3;
  bool overlap = false, dense_labels = false;
  bool shard = false;  ///< ranks share the update
  bool scales_loss = false;
  std::optional<AverageRule> average = {};
  ClipRule clip = {};
  Gating gating = Gating::graph;
  Recompute recompute = Recompute::marked;
  std::int64_t bucket_first_bytes = 1 << 10, bucket_bytes = 1 << 12;
  std::int64_t ids = 0;              ///< features are whole numbers below this; 0: any numbers
  std::optional<int> branches = {};  ///< of a device
  Device* device = &cpu_device();
  const KernelTable* kernels = &cpu_kernels();  ///< the device's
};

/// Samples with values in [-1, 1) plus a term that depends on their class, so that there is something to
/// learn.
inline ReaderDataset random_dataset(const TinyRunOptions& options) {
  DatasetParts parts;
  parts.source = "random";
  parts.record_word = "record";
  parts.size = options.samples;
  parts.feature_shape = options.features;
  const std::int64_t elements = options.features.num_elements();
  parts.features = Buffer(cpu_device(), static_cast<std::size_t>(options.samples * elements) * sizeof(float));
  parts.num_label_columns = options.dense_labels ? options.classes : 1;
  for (std::int64_t s = 0; s < options.samples; ++s) {
    const auto label = static_cast<std::int32_t>(s % options.classes);
    for (std::int64_t e = 0; e < elements; ++e) {
      const PhiloxBlock words =
          philox_words(9, 1, 0, static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(e));
      parts.features.as<float>()[static_cast<std::size_t>(s * elements + e)] =
          options.ids > 0 ? static_cast<float>(words[0] % static_cast<std::uint32_t>(options.ids))
                          : 2 * philox_uniform(words[0]) - 1 + 0.3F * static_cast<float>(label);
    }
    if (!options.dense_labels) parts.label_indices.push_back(label);
    for (int c = 0; options.dense_labels && c < options.classes; ++c)
      parts.label_rows.push_back(c == label ? 1.0F : 0.0F);
  }
  return ReaderDataset(std::move(parts));
}

/// Created by all ranks of `world` with the same options.
class TinyRun {
 public:
  TinyRun(Communicator& world, const TinyRunOptions& options)
      : dataset_(random_dataset(options)),
        plan_({.num_samples = options.samples,
               .batch_size = options.batch_size,
               .shards = options.shards,
               .seed = 4}),
        graph_(graph_from_config(parse_yaml(options.layers, "test"), options.features)),
        heads_(make_loss(Node::scalar("softmax_cross_entropy"))),
        optimizer_(optimizer_options(parse_yaml(options.optimizer, "test")).make()),
        device_(*options.device),
        kernels_(*options.kernels),
        workers_(options.threads, device_),
        gradients_(world.duplicate("gradients")),
        sync_(world.duplicate("sync")),
        control_(world.duplicate("control")) {
    heads_.add_outputs(graph_);
    graph_.recompute(options.recompute);
    graph_.finish(variables_);
    for (std::size_t i = 0; i < variables_.variables().size(); ++i)
      if (!optimizer_->takes_rows(variables_.variables()[i].name))
        variables_.keep_dense(static_cast<VariableId>(i));
    choose_sparse(variables_, options.batch_size, 0.5);
    variables_.commit(device_);
    heads_.prepare(graph_, device_);
    variables_.initialize(4);
    TrainerOptions trainer;
    trainer.bucket_first_bytes = options.bucket_first_bytes;
    trainer.bucket_bytes = options.bucket_bytes;
    trainer.gating = options.gating;
    trainer.branches = options.branches;
    num_buckets_ = make_buckets(variables_.dense_elements(), variables_.cut_points(),
                                trainer.bucket_first_bytes, trainer.bucket_bytes)
                       .size();
    std::vector<Range> held;
    if (options.shard) {
      ownership_ = share_update(variables_, world.size(), options.shards, trainer.bucket_first_bytes,
                                trainer.bucket_bytes);
      held = held_parts(*ownership_, variables_, world.rank());
    }
    optimizer_->create_slots(device_, variables_, held);
    if (device_.is_host())
      trainer.reducer.sum = HostTreeSum{.ownership = ownership_};
    else
      trainer.reducer.sum = DeviceTreeSum{};
    trainer.scales_loss = options.scales_loss;
    trainer.average = options.average;
    trainer.reducer.overlap = options.overlap;
    trainer.clip = options.clip;
    shards_ = options.shards;
    trainer_ =
        std::make_unique<Trainer>(context(), *gradients_, *control_, dataset_, plan_, *optimizer_, trainer);
    workers_.grow_scratch(trainer_->executor().scratch_bytes(), trainer_->executor().num_lanes());
  }
  ExecutorContext context() {
    return {graph_,           variables_, heads_,  kernels_, device_, workers_.pool(),
            workers_.lanes(), *sync_,     nullptr, shards_,  4};
  }
  Trainer& trainer() { return *trainer_; }
  Workers& workers() { return workers_; }
  Communicator& control() { return *control_; }
  VariableStore& variables() { return variables_; }
  Optimizer& optimizer() { return *optimizer_; }
  const StepPlan& plan() const { return plan_; }
  /// Of the gradients.
  std::size_t num_buckets() const { return num_buckets_; }
  const Ownership* ownership() const { return ownership_.get(); }

 private:
  ReaderDataset dataset_;
  StepPlan plan_;
  Graph graph_;
  VariableStore variables_;
  Heads heads_;
  std::unique_ptr<Optimizer> optimizer_;
  Device& device_;
  const KernelTable& kernels_;
  Workers workers_;
  std::unique_ptr<Communicator> gradients_, sync_, control_;
  int shards_ = 0;
  std::size_t num_buckets_ = 0;
  std::shared_ptr<const Ownership> ownership_;
  std::unique_ptr<Trainer> trainer_;
};

}  // namespace lockstep

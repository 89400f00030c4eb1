// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "view/report/predictions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/cpu.h"
#include "run/jobs/true_labels.h"
#include "run/setup/run_size.h"
#include "train/batch_predictor.h"
#include "train/dataset_batch_source.h"
#include "train/output_units.h"
#include "train/workers.h"
#include "view/report/head_collector.h"

namespace lockstep::report {

namespace {

/// Without the option --mistakes a set is used if this many operations suffice: some seconds on two cores.
constexpr double kMostFlops = 1e11, kMostValues = 2e8;

/// All samples that an evaluation takes, in their order.
void predict_all(OpenedRun& opened, const UsedDataset& data, std::vector<HeadCollector>& heads) {
  const Config& config = *opened.config;
  const Model& model = *opened.model;
  SelfCommunicator self;
  const int shards = std::max(1, static_cast<int>(opened.checkpoint.header.shards));
  Workers workers(opened.device->is_gpu() ? 1 : std::min(available_cores(), shards), opened.device->device);
  const ExecutorContext context{*model.graph,
                                *model.variables,
                                *model.heads,
                                opened.device->kernels,
                                opened.device->device,
                                workers.pool(),
                                workers.lanes(),
                                self,
                                nullptr,
                                shards,
                                config.general.seed};
  const StepPlan plan({.num_samples = data->size(),
                       .batch_size = config.evaluation_batch_size(),
                       .shards = shards,
                       .shuffle = Shuffle::none,
                       .choice = data.use().choice});
  const std::vector<std::int64_t> sizes = plan.distinct_shard_sizes();
  BatchPredictor predictor(context, {.max_samples = plan.spec().batch_size, .sample_counts = sizes});
  DatasetBatchSource source(*data, plan, workers.pool().size(), predictor.num_slots());
  workers.grow_scratch(predictor.scratch_bytes());
  predictor.refresh_weights();
  TrueLabels labels(*data, *data, *model.heads);
  const std::vector<OutputUnits> units = output_units(*data, *model.heads);
  std::vector<float> in_units;
  std::vector<std::int64_t> samples;
  for (Cursor cursor; cursor.epoch == 0; cursor = plan.advance(cursor)) {
    const Batch batch = plan.batch(cursor);
    predictor.run(source, batch);
    predictor.collect(self, source, batch);
    samples.resize(static_cast<std::size_t>(batch.count));
    plan.samples(batch.epoch, batch.first, samples);
    labels.gather(samples);
    for (std::size_t i = 0; i < heads.size(); ++i) {
      const int head = static_cast<int>(i);
      const std::span<const float> outputs = predictor.rows(head).first(
          static_cast<std::size_t>(batch.count * predictor.values_per_sample(head)));
      in_units.assign(outputs.begin(), outputs.end());
      if (units[i].changes()) units[i].to_data(in_units);
      PredictedRows rows{.outputs = in_units};
      labels.set(head, rows);
      heads[i].add(samples, rows);
    }
  }
}

std::string too_much(const UsedDataset& data, const Model& model) {
  const double flops = static_cast<double>(data.num_chosen()) * model.graph->flops_per_sample();
  const double values =
      static_cast<double>(data.num_chosen()) * static_cast<double>(data->feature_shape().num_elements());
  if (flops <= kMostFlops && values <= kMostValues) return {};
  return fmt::format(
      "Not computed, because it may take long: a forward pass of {} samples is {:.3g} GFLOP. `lockstep "
      "report --mistakes 12` computes it.",
      data.num_chosen(), flops * 1e-9);
}

}  // namespace

Predictions predict_for_report(OpenedRun& opened, const PredictionLimits& limits) {
  Predictions found;
  const auto without = [&](std::string why) {
    found.heads.clear();
    found.problem = std::move(why);
    return found;
  };
  if (limits.mistakes == 0) return without("Not computed: --mistakes 0.");
  if (!opened.model) return without(fmt::format("Not computed: {}.", opened.problem));
  if (!opened.no_values.empty()) return without(fmt::format("Not computed: {}", opened.no_values));
  if (!opened.data.eval) return without("Not computed: the run has no evaluation set.");
  const UsedDataset& data = opened.data.eval;
  if (data->label_kind() == LabelKind::none)
    return without("Not computed: the evaluation set has no labels.");
  const std::string much = limits.whatever_it_takes ? "" : too_much(data, *opened.model);
  if (!much.empty()) return without(much);
  found.step = opened.checkpoint.header.global_step;
  found.averaged = opened.averaged;
  try {
    std::vector<HeadCollector> heads;
    const TrueLabels labels(*data, *data, *opened.model->heads);
    const std::vector<OutputUnits> units = output_units(*data, *opened.model->heads);
    for (int i = 0; i < opened.model->heads->size(); ++i)
      heads.emplace_back((*opened.model->heads)[i], i, labels, data,
                         units[static_cast<std::size_t>(i)].names(), limits.mistakes);
    predict_all(opened, data, heads);
    for (HeadCollector& head : heads)
      if (head.usable()) found.heads.push_back(head.finish(*data));
    for (HeadPredictions& head : found.heads)
      for (int i = 0; i < opened.model->heads->size(); ++i)
        if ((*opened.model->heads)[i].name == head.name)
          head.as_trained = units[static_cast<std::size_t>(i)].problem();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::bug) throw;
    return without(fmt::format("Not computed: {}.", error.what_happened()));
  }
  if (found.heads.empty())
    return without("Not computed: no head has labels that its predictions can be compared with.");
  return found;
}

}  // namespace lockstep::report

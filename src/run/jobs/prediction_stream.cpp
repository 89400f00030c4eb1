// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/prediction_stream.h"

#include <algorithm>

#include "comm/shared_error.h"
#include "config/params.h"
#include "core/error.h"
#include "core/range.h"
#include "data/step_plan.h"
#include "data/used_dataset.h"
#include "run/setup/run_context.h"
#include "train/batch_predictor.h"
#include "train/dataset_batch_source.h"
#include "train/guarded_batch_source.h"
#include "train/output_units.h"

namespace lockstep {

namespace {

/// Features without their labels: a forward pass needs none, and nobody has checked them against the loss.
class FeaturesOnly final : public BatchSource {
 public:
  explicit FeaturesOnly(BatchSource& source) : source_(source) {}
  void begin(const Batch& batch, Range own) override { source_.begin(batch, own); }
  Microshard extent(const Batch& batch, int shard) const override { return source_.extent(batch, shard); }
  Labels fetch(const Batch& batch, const Microshard& microshard, FetchPlace place, float* features) override {
    source_.fetch(batch, microshard, place, features);
    return {};
  }
  Labels fetch_labels(const Batch&, const Microshard&, FetchPlace, float*) override { return {}; }

 private:
  BatchSource& source_;
};

StepPlan plan_of(const UsedDataset& samples, const PredictionChoice& choice, int shards) {
  if (!samples)
    throw SharedError(Error(ErrorKind::config, "there are no samples to predict", "",
                            "Add `eval:` to section data, or give samples."));
  return StepPlan({.num_samples = samples->size(),
                   .batch_size = choice.batch_size,
                   .shards = shards,
                   .seed = choice.seed,
                   .shuffle = Shuffle::none,
                   .choice = samples.use().choice});
}

/// A layer by its name, or one of its outputs. A layer that another one is fused into has no outputs of its
/// own.
Graph::Source layer_of(const Graph& graph, const std::string& name) {
  std::vector<std::string> known;
  for (int i = 0; i < static_cast<int>(graph.nodes().size()); ++i) {
    const Graph::Node& node = graph.nodes()[static_cast<std::size_t>(i)];
    for (int output = 0; output < static_cast<int>(node.outputs.size()); ++output) {
      known.push_back(output == 0 ? node.layer->name() : fmt::format("{}:{}", node.layer->name(), output));
      if (name != known.back()) continue;
      for (const Graph::Node& other : graph.nodes())
        if (other.fused_into == i)
          throw Error(ErrorKind::usage,
                      fmt::format("the outputs of {} are computed together with those of {}", name,
                                  other.layer->name()),
                      "--layer", fmt::format("Ask for {}.", other.layer->name()));
      return {i, output};
    }
  }
  const std::string near = nearest(name, std::vector<std::string_view>(known.begin(), known.end()));
  throw Error(ErrorKind::usage, fmt::format("there is no layer '{}'", name), "--layer",
              near.empty() ? "`lockstep check` lists the layers." : fmt::format("Did you mean '{}'?", near));
}

}  // namespace

struct PredictionStream::Parts {
  Parts(RunContext& run_context, const UsedDataset& set, const PredictionChoice& choice);
  /// The rows of the batch become numbers in the units of the data.
  void convert();
  /// The rows that this rank has, by position in the batch.
  std::span<const float> all_rows(int head) const {
    const auto number = static_cast<std::size_t>(head);
    return units[number].changes() ? std::span<const float>(converted[number]) : predictor->rows(head);
  }

  std::unique_ptr<RunContext> own;
  RunContext& context;
  StepPlan plan;
  std::unique_ptr<BatchPredictor> predictor;
  std::unique_ptr<DatasetBatchSource> all;
  std::unique_ptr<BatchSource> features;
  std::unique_ptr<GuardedBatchSource> source;
  bool collects;
  std::vector<std::string> names;
  std::vector<Shape> shapes;
  std::vector<OutputUnits> units;             ///< by head, or layer
  std::vector<std::vector<float>> converted;  ///< by head: the rows of the batch, where units differ
  Cursor cursor;
  Batch batch{};
  std::int64_t first = 0;
  std::unique_ptr<PassHooks> hooks;  ///< null: none
};

PredictionStream::Parts::Parts(RunContext& run_context, const UsedDataset& set,
                               const PredictionChoice& choice)
    : context(run_context), plan(plan_of(set, choice, run_context.shards())), collects(choice.collects) {
  const ExecutorContext executor = context.executor_context();
  const std::vector<std::int64_t> sizes = plan.distinct_shard_sizes();
  std::vector<Graph::Source> layers;
  for (const std::string& name : choice.layers) layers.push_back(layer_of(executor.graph, name));
  predictor = std::make_unique<BatchPredictor>(
      executor,
      BatchPredictor::Options{.max_samples = choice.batch_size, .sample_counts = sizes, .layers = layers});
  all = std::make_unique<DatasetBatchSource>(*set, plan, executor.pool.size(), predictor->num_slots());
  features = std::make_unique<FeaturesOnly>(*all);
  source = std::make_unique<GuardedBatchSource>(*features, executor.graph.features().num_elements());
  context.workers().grow_scratch(predictor->scratch_bytes());
  shared([&] { context.check_algorithms(); });
  predictor->refresh_weights();
  names = choice.layers;
  for (const Graph::Source& layer : layers) shapes.push_back(executor.graph.shape(layer));
  units.resize(layers.size());
  if (layers.empty()) {
    for (const Head& head : executor.heads) {
      names.push_back(head.name);
      shapes.push_back(head.shape);
    }
    const UsedDataset& of_targets = context.train_set() ? context.train_set() : context.eval_set();
    units = output_units(*of_targets, executor.heads);
  }
  converted.resize(units.size());
}

void PredictionStream::Parts::convert() {
  for (std::size_t head = 0; head < units.size(); ++head) {
    if (!units[head].changes()) continue;
    const int number = static_cast<int>(head);
    const auto count = static_cast<std::size_t>(batch.count * predictor->values_per_sample(number));
    const std::span<const float> rows = predictor->rows(number).first(count);
    converted[head].assign(rows.begin(), rows.end());
    units[head].to_data(converted[head]);
  }
}

PredictionStream::PredictionStream(RunContext& context, const UsedDataset& samples,
                                   const PredictionChoice& choice)
    : parts_(std::make_unique<Parts>(context, samples, choice)) {}

PredictionStream::PredictionStream(std::unique_ptr<RunContext> context,
                                   const std::vector<PassHookFunction>& hooks)
    : PredictionStream(*context, context->eval_set(),
                       PredictionChoice{.batch_size = context->config().evaluation_batch_size()}) {
  parts_->own = std::move(context);
  if (hooks.empty()) return;
  parts_->hooks =
      std::make_unique<PassHooks>(parts_->context.world(), hooks, size(), parts_->plan.spec().batch_size);
  parts_->hooks->begin();
}
PredictionStream::~PredictionStream() = default;

std::int64_t PredictionStream::size() const { return parts_->plan.order_size(); }
std::int64_t PredictionStream::first() const { return parts_->first; }
std::int64_t PredictionStream::count() const { return parts_->batch.count; }
const Batch& PredictionStream::batch() const { return parts_->batch; }
std::int64_t PredictionStream::sample_at(std::int64_t position) const {
  return parts_->plan.sample_at(0, position);
}
const OutputUnits& PredictionStream::units(int head) const {
  return parts_->units[static_cast<std::size_t>(head)];
}
const std::vector<std::string>& PredictionStream::names() const { return parts_->names; }
const Shape& PredictionStream::shape(int head) const {
  return parts_->shapes[static_cast<std::size_t>(head)];
}

Range PredictionStream::own() const {
  const Communicator& world = parts_->context.world();
  return parts_->predictor->own_samples(*parts_->source, parts_->batch, world.rank(), world.size());
}

std::span<const float> PredictionStream::own_rows(int head) const {
  const Range samples = own();
  const std::int64_t values = parts_->predictor->values_per_sample(head);
  return parts_->all_rows(head).subspan(static_cast<std::size_t>(samples.first * values),
                                        static_cast<std::size_t>(samples.size() * values));
}

bool PredictionStream::next() {
  Parts& p = *parts_;
  if (p.cursor.epoch > 0) {
    if (p.hooks) p.hooks->end(nullptr);
    p.hooks.reset();
    return false;
  }
  if (p.hooks) p.hooks->before_batch();
  p.first += p.batch.count;
  p.batch = p.plan.batch(p.cursor);
  p.predictor->run(*p.source, p.batch);
  p.source->check(p.batch, p.context.world());
  if (p.collects) p.predictor->collect(p.context.world(), *p.source, p.batch);
  p.convert();
  p.cursor = p.plan.advance(p.cursor);
  if (p.hooks) p.hooks->after_batch(this);
  return true;
}

std::span<const float> PredictionStream::rows(int head) const {
  if (parts_->context.world().rank() != 0) return {};
  return parts_->all_rows(head).first(
      static_cast<std::size_t>(parts_->batch.count * parts_->predictor->values_per_sample(head)));
}

std::span<const float> PredictionStream::values(std::string_view name) const {
  const auto found = std::ranges::find(names(), name);
  if (found != names().end()) return rows(static_cast<int>(found - names().begin()));
  if (name.empty() && names().size() == 1) return rows(0);
  std::string known;
  for (const std::string& head : names()) known += (known.empty() ? "" : ", ") + head;
  throw Error(ErrorKind::usage, fmt::format("the model predicts no '{}'", name), "",
              fmt::format("It predicts {}.", known.empty() ? "one thing without a name" : known));
}

}  // namespace lockstep

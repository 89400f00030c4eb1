// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/jobs/prediction_stream.h"

#include <algorithm>

#include "config/params.h"
#include "core/error.h"
#include "core/range.h"
#include "train/dataset_batch_source.h"
#include "train/predictor.h"

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

StepPlan plan_of(const UsedDataset& samples, std::int64_t batch_size, int shards) {
  return StepPlan({.num_samples = samples->size(),
                   .batch_size = batch_size,
                   .shards = shards,
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

PredictionStream::PredictionStream(RunContext& context, const UsedDataset& samples,
                                   const PredictionChoice& choice)
    : context_(context),
      plan_(plan_of(samples, choice.batch_size, context.shards())),
      collects_(choice.collects) {
  const ExecutorContext executor = context.executor_context();
  const std::vector<std::int64_t> sizes = plan_.distinct_shard_sizes();
  std::vector<Graph::Source> layers;
  for (const std::string& name : choice.layers) layers.push_back(layer_of(executor.graph, name));
  predictor_ = std::make_unique<Predictor>(
      executor,
      Predictor::Options{.max_samples = choice.batch_size, .sample_counts = sizes, .layers = layers});
  all_ = std::make_unique<DatasetBatchSource>(*samples, plan_, executor.pool.size(), predictor_->num_slots());
  source_ = std::make_unique<FeaturesOnly>(*all_);
  context.workers().grow_scratch(predictor_->scratch_bytes());
  predictor_->refresh_weights();
  names_ = choice.layers;
  for (const Graph::Source& layer : layers) shapes_.push_back(executor.graph.shape(layer));
  if (!layers.empty()) return;
  for (const Head& head : executor.heads) {
    names_.push_back(head.name);
    shapes_.push_back(head.shape);
  }
}

PredictionStream::PredictionStream(std::unique_ptr<RunContext> context,
                                   const std::vector<PassHookFunction>& hooks)
    : PredictionStream(*context, context->eval_set(),
                       PredictionChoice{.batch_size = context->config().evaluation_batch_size()}) {
  own_ = std::move(context);
  if (hooks.empty()) return;
  hooks_ = std::make_unique<PassHooks>(context_.world(), hooks, size(), plan_.spec().batch_size);
  hooks_->begin();
}
PredictionStream::~PredictionStream() = default;

std::int64_t PredictionStream::size() const { return plan_.order_size(); }

const Shape& PredictionStream::shape(int head) const { return shapes_[static_cast<std::size_t>(head)]; }

Range PredictionStream::own() const {
  const Communicator& world = context_.world();
  return predictor_->own_samples(*source_, batch_, world.rank(), world.size());
}

std::span<const float> PredictionStream::own_rows(int head) const {
  const Range samples = own();
  const std::int64_t values = predictor_->values_per_sample(head);
  return predictor_->rows(head).subspan(static_cast<std::size_t>(samples.first * values),
                                        static_cast<std::size_t>(samples.size() * values));
}

bool PredictionStream::next() {
  if (cursor_.epoch > 0) {
    if (hooks_) hooks_->end(nullptr);
    hooks_.reset();
    return false;
  }
  if (hooks_) hooks_->before_batch();
  first_ += batch_.count;
  batch_ = plan_.batch(cursor_);
  predictor_->run(*source_, batch_);
  if (collects_) predictor_->collect(context_.world(), *source_, batch_);
  cursor_ = plan_.advance(cursor_);
  if (hooks_) hooks_->after_batch(this);
  return true;
}

std::span<const float> PredictionStream::rows(int head) const {
  if (context_.world().rank() != 0) return {};
  return predictor_->rows(head).first(
      static_cast<std::size_t>(batch_.count * predictor_->values_per_sample(head)));
}

std::span<const float> PredictionStream::values(std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  if (found != names_.end()) return rows(static_cast<int>(found - names_.begin()));
  if (name.empty() && names_.size() == 1) return rows(0);
  std::string known;
  for (const std::string& head : names_) known += (known.empty() ? "" : ", ") + head;
  throw Error(ErrorKind::usage, fmt::format("the model predicts no '{}'", name), "",
              fmt::format("It predicts {}.", known.empty() ? "one thing without a name" : known));
}

}  // namespace lockstep

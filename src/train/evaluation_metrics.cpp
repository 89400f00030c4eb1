// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/evaluation_metrics.h"

#include <algorithm>
#include <limits>

#include "comm/flight_recorder.h"
#include "config/yaml_node.h"
#include "core/name_list.h"
#include "core/plain_nan.h"
#include "core/range.h"
#include "core/trace.h"

namespace lockstep {

namespace {

/// States of metrics that take more than this on one rank are a mistake: classes are counted in thresholds.
constexpr double kMostStateBytes = 4e9;

int head_of(const MetricSpec& spec, const Heads& heads) {
  if (spec.head.empty() && heads.size() == 1) return 0;
  std::vector<std::string_view> known;
  for (int h = 0; h < heads.size(); ++h) {
    if (!spec.head.empty() && heads[h].name == spec.head) return h;
    known.push_back(heads[h].name);
  }
  if (spec.head.empty())
    throw spec.params.error("head", "there are several heads, and the metric names none",
                            fmt::format("Say `head:` with one of {}.", name_list(known)));
  const std::string near = nearest(spec.head, known);
  throw spec.params.error("head", fmt::format("there is no head '{}'", spec.head),
                          !near.empty() ? fmt::format("Did you mean '{}'?", near)
                          : heads.size() == 1 && heads[0].name.empty()
                              ? "The model has one head without a name: leave it out."
                              : fmt::format("There are: {}.", name_list(known)));
}

MetricInput input_of(const Heads& heads, const Head& head, const UsedDataset& data) {
  MetricInput input;
  input.output = head.shape;
  input.predictions = head.loss->predictions();
  input.num_samples = data.num_chosen();
  const std::int64_t columns = data->num_label_columns();
  const LabelForm form = heads.form(head, columns);
  input.dense_labels = form == LabelForm::rows;
  input.label_columns = form == LabelForm::none ? 0 : heads.width(head, columns);
  return input;
}

/// "layer" or "layer:1".
Graph::Source layer_of(const Params& params, const std::string& name, const Graph& graph) {
  std::vector<std::string> known;
  for (int i = 0; i < static_cast<int>(graph.nodes().size()); ++i) {
    const Graph::Node& node = graph.nodes()[static_cast<std::size_t>(i)];
    for (int output = 0; output < static_cast<int>(node.outputs.size()); ++output) {
      known.push_back(output == 0 ? node.layer->name() : fmt::format("{}:{}", node.layer->name(), output));
      if (name == known.back()) return {i, output};
    }
  }
  const std::string near = nearest(name, std::vector<std::string_view>(known.begin(), known.end()));
  throw params.error(
      "layer", fmt::format("there is no layer '{}'", name),
      near.empty() ? "`lockstep check` lists the layers." : fmt::format("Did you mean '{}'?", near));
}

/// Where a layer's outputs are when they have been computed. A layer that another one is fused into has none
/// of its own.
void bind_layer(BoundMetric& bound, const Graph& graph) {
  const Params& params = bound.spec.params;
  const std::string name = bound.metric->layer();
  bound.layer = layer_of(params, name, graph);
  for (const Graph::Node& node : graph.nodes())
    if (node.fused_into == bound.layer.node)
      throw params.error(
          "layer",
          fmt::format("the outputs of {} are computed together with those of {}", name, node.layer->name()),
          fmt::format("Ask for {}.", node.layer->name()));
  bound.shape = graph.shape(bound.layer);
}

}  // namespace

std::vector<BoundMetric> bind_metrics(std::span<const MetricSpec> specs, const Heads& heads,
                                      const Graph& graph, const UsedDataset& data) {
  std::vector<BoundMetric> bound;
  for (const MetricSpec& spec : specs) {
    BoundMetric one{.spec = spec};
    one.head = head_of(one.spec, heads);
    const Head& head = heads[one.head];
    MetricInput input = input_of(heads, head, data);
    if (one.spec.entry->needs_labels && one.spec.transform == MetricSpec::Transform::of_loss)
      one.units = OutputUnits(*data, heads, one.head);
    input.names_outputs = head.shape.rank() == 1 && one.units.names().size() > 1;
    one.name = heads.size() > 1 ? head.name + "/" + one.spec.name : one.spec.name;
    one.shape = head.shape;
    one.metric = make_metric(one.spec, input);
    if (one.spec.transform == MetricSpec::Transform::of_loss && input.predictions == PredictionKind::labels)
      one.spec.transform = MetricSpec::Transform::sigmoid;
    if (!one.metric->layer().empty()) {
      bind_layer(one, graph);
      input.output = one.shape;
      one.metric = one.spec.entry->make(one.spec.params, input);
    }
    if (input.names_outputs && one.metric->reports_outputs()) one.columns = one.units.names();
    bound.push_back(std::move(one));
  }
  return bound;
}

std::vector<BoundMetric> weighted_accuracies(const Heads& heads, const Graph& graph,
                                             const UsedDataset& data) {
  std::string list;
  for (const Head& head : heads)
    if (head.weight_column >= 0 && head.loss->has_classes() &&
        head.loss->predictions() == PredictionKind::classes)
      list += head.name.empty() ? "accuracy, " : fmt::format("{{accuracy: {{head: '{}'}}}}, ", head.name);
  return bind_metrics(metrics_from_config(parse_yaml("[" + list + "]", "accuracy")), heads, graph, data);
}

std::vector<std::string> BoundMetric::number_names() const {
  std::vector<std::string> names;
  if (metric->has_value()) names.push_back(name);
  for (const std::string& column : columns) names.push_back(fmt::format("{}/{}", name, column));
  return names;
}

EvaluationMetrics::EvaluationMetrics(std::vector<BoundMetric> metrics, const ExecutorContext& context,
                                     const Graph::Calls& calls, Communicator& control, const StepPlan& plan)
    : metrics_(std::move(metrics)),
      context_(context),
      control_(control),
      own_(shards_of_rank(control.rank(), control.size(), context.shards)),
      uses_(static_cast<std::size_t>(context.heads.size())) {
  std::int64_t width = 0;
  for (std::size_t m = 0; m < metrics_.size(); ++m) {
    const BoundMetric& bound = metrics_[m];
    first_.push_back(width);
    width += bound.metric->width();
    Uses& uses = uses_[static_cast<std::size_t>(bound.head)];
    if (!bound.metric->layer().empty()) {
      const int value = calls.node_values[static_cast<std::size_t>(bound.layer.node)]
                                         [static_cast<std::size_t>(bound.layer.output)];
      const int operation = calls.values[static_cast<std::size_t>(value)].producer;
      LOCKSTEP_REQUIRE(operation >= 0, ErrorKind::config,
                       "metric {}: the outputs of {} are the features; name a layer that computes something",
                       bound.name, bound.metric->layer());
      const auto& outputs = calls.operations[static_cast<std::size_t>(operation)].outputs;
      layers_.push_back(
          {operation, static_cast<int>(std::ranges::find(outputs, value) - outputs.begin()), m});
      continue;
    }
    const bool by_loss = bound.spec.transform == MetricSpec::Transform::of_loss;
    const bool predictions = bound.metric->needs_predictions();
    uses.predictions = uses.predictions || (by_loss && predictions);
    uses.outputs = uses.outputs || bound.metric->needs_outputs() || (!by_loss && predictions);
    uses.class_parts |= bound.metric->class_parts();
  }
  const std::int64_t shards_per_rank = (context.shards + control.size() - 1) / control.size();
  const double bytes = 8.0 * static_cast<double>(width) * static_cast<double>(shards_per_rank + 1);
  if (bytes > kMostStateBytes || width > std::numeric_limits<int>::max())
    throw Error(ErrorKind::config,
                fmt::format("eval.metrics: the states of the metrics take {:.1f} GB for {} shards on a rank",
                            bytes * 1e-9, shards_per_rank),
                metrics_.front().spec.params.where(),
                "Lower num_thresholds, or leave out curves and matrices over many classes.");
  sums_ = std::make_unique<SmallSum>(control, context.shards, 0, static_cast<int>(width),
                                     [this](double* into, const double* right) {
                                       for (std::size_t m = 0; m < metrics_.size(); ++m)
                                         metrics_[m].metric->merge(into + first_[m], right + first_[m]);
                                     });
  plan_records(plan);

  const std::vector<std::int64_t> sizes = plan.distinct_shard_sizes();
  const std::int64_t most = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  const bool on_host = context.device.is_host();
  const auto room = [&](const Shape& shape) {
    return static_cast<std::size_t>(most * shape.num_elements()) * sizeof(float);
  };
  for (int thread = 0; thread < context.pool.size(); ++thread) {
    std::vector<Place>& places = places_.emplace_back(uses_.size());
    for (std::size_t h = 0; h < uses_.size(); ++h)
      places[h] = make_place(uses_[h], context.heads[static_cast<int>(h)].shape, most);
    std::vector<Buffer>& own = own_places_.emplace_back();
    std::vector<Buffer>& widened = widened_.emplace_back();
    for (const BoundMetric& bound : metrics_) {
      const bool transforms = bound.spec.transform == MetricSpec::Transform::softmax ||
                              bound.spec.transform == MetricSpec::Transform::sigmoid;
      const bool reads_layer = !bound.metric->layer().empty() && !on_host;
      own.push_back(transforms || reads_layer ? Buffer::pinned(context.device, room(bound.shape)) : Buffer());
      const bool narrow = !bound.metric->layer().empty() && context.graph.activation_type() != DType::f32;
      widened.push_back(narrow ? Buffer(context.device, room(bound.shape)) : Buffer());
    }
  }
}

EvaluationMetrics::Place EvaluationMetrics::make_place(const Uses& uses, const Shape& shape,
                                                       std::int64_t most_samples) const {
  Device& device = context_.device;
  const bool on_host = device.is_host();
  const auto numbers = static_cast<std::size_t>(most_samples * shape.num_elements());
  const std::size_t positions = numbers / static_cast<std::size_t>(std::max<std::int64_t>(shape.last(), 1));
  Place place;
  if (uses.outputs && !on_host) place.outputs = Buffer::pinned(device, numbers * sizeof(float));
  if (uses.predictions) {
    place.predictions = Buffer::pinned(device, numbers * sizeof(float));
    if (!on_host) place.predictions_there = Buffer(device, numbers * sizeof(float));
  }
  if (uses.class_parts != 0) {
    place.labels = Buffer::pinned(device, positions * sizeof(std::int32_t));
    place.scores = Buffer::pinned(device, positions * sizeof(ClassScore));
    if (!on_host) {
      place.labels_there = Buffer(device, positions * sizeof(std::int32_t));
      place.scores_there = Buffer(device, positions * sizeof(ClassScore));
    }
  }
  return place;
}

// Each rank has room for as many records as the one with the most; what is not filled does not count.
void EvaluationMetrics::plan_records(const StepPlan& plan) {
  records_.resize(metrics_.size());
  if (std::ranges::none_of(metrics_, [](const BoundMetric& m) { return m.metric->records_per_sample() > 0; }))
    return;
  std::vector<std::int64_t> by_shard(static_cast<std::size_t>(context_.shards));
  for (Cursor cursor; cursor.epoch == 0; cursor = plan.advance(cursor))
    for (int shard = 0; shard < context_.shards; ++shard)
      by_shard[static_cast<std::size_t>(shard)] += plan.shard_range(plan.batch(cursor).count, shard).size();
  for (int rank = 0; rank < control_.size(); ++rank) {
    std::int64_t samples = 0;
    const Range shards = shards_of_rank(rank, control_.size(), context_.shards);
    for (std::int64_t shard = shards.first; shard < shards.last; ++shard) {
      if (rank == control_.rank()) first_sample_.push_back(samples);
      samples += by_shard[static_cast<std::size_t>(shard)];
    }
    most_samples_per_rank_ = std::max(most_samples_per_rank_, samples);
  }
  for (std::size_t m = 0; m < metrics_.size(); ++m)
    records_[m].resize(static_cast<std::size_t>(control_.size() * most_samples_per_rank_ *
                                                metrics_[m].metric->records_per_sample()));
}

void EvaluationMetrics::begin() {
  for (std::int64_t shard = own_.first; shard < own_.last; ++shard)
    std::fill_n(sums_->leaf(static_cast<int>(shard)), sums_->width(), 0.0);
  samples_.assign(static_cast<std::size_t>(own_.size()), 0);
  for (std::vector<ScoreRecord>& records : records_) std::ranges::fill(records, ScoreRecord{0, -1});
}

const float* EvaluationMetrics::to_host(const Lane& lane, const float* values, std::int64_t count,
                                        Buffer& pinned) const {
  if (context_.device.is_host()) return values;
  context_.device.download(lane.stream, pinned.data(), values,
                           static_cast<std::size_t>(count) * sizeof(float));
  return pinned.as<float>().data();
}

void EvaluationMetrics::take(const MicroshardOutputs& m) {
  const Traced traced("evaluation", "metrics");
  const std::int64_t n = m.microshard.n;
  const auto thread = static_cast<std::size_t>(m.lane.index);
  std::vector<MetricBatch> batches(uses_.size());
  for (std::size_t h = 0; h < uses_.size(); ++h) {
    const int head = static_cast<int>(h);
    const Head& of = context_.heads[head];
    const std::int64_t count = n * of.shape.num_elements();
    Place& place = places_[thread][h];
    batches[h].n = n;
    batches[h].labels = context_.heads.labels_of(head, m.labels, n);
    if (uses_[h].outputs) batches[h].outputs = to_host(m.lane, m.outputs[h], count, place.outputs);
    if (uses_[h].class_parts != 0)
      batches[h].scores = scores_of(m.lane, of.shape, uses_[h].class_parts, batches[h], m.outputs[h], place);
    if (!uses_[h].predictions) continue;
    const Buffer& into = context_.device.is_host() ? place.predictions : place.predictions_there;
    float* const predicted = into.as<float>().data();
    of.loss->predict(context_.kernels, context_.device, m.lane, n, of.shape, m.outputs[h], predicted);
    batches[h].predictions = to_host(m.lane, predicted, count, place.predictions);
  }
  if (!context_.device.is_host()) {
    const RecordedCall waiting("the GPU's outputs for the metrics", 0);
    context_.device.synchronize(m.lane.stream);
  }
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    if (metrics_[i].metric->layer().empty())
      add_one(i, m.microshard.shard, m.lane.index, batches[static_cast<std::size_t>(metrics_[i].head)]);
  samples_[static_cast<std::size_t>(m.microshard.shard - own_.first)] += n;
}

/// Where they will be in host memory when the lane has done its work.
const ClassScore* EvaluationMetrics::scores_of(const Lane& lane, const Shape& shape, unsigned parts,
                                               const MetricBatch& batch, const float* outputs,
                                               const Place& place) const {
  const std::int64_t classes = shape.last(), rows = batch.n * shape.num_elements() / classes;
  auto* const labels = place.labels.as<std::int32_t>().data();
  auto* const scores = place.scores.as<ClassScore>().data();
  class_labels(batch.labels, batch.n, shape, labels);
  const MetricKernels& kernels = context_.kernels.metric;
  if (context_.device.is_host()) {
    kernels.class_scores(lane, rows, classes, outputs, labels, parts, scores);
    return scores;
  }
  auto* const labels_there = place.labels_there.as<std::int32_t>().data();
  auto* const scores_there = place.scores_there.as<ClassScore>().data();
  context_.device.upload(lane.stream, labels_there, labels,
                         static_cast<std::size_t>(rows) * sizeof(std::int32_t));
  kernels.class_scores(lane, rows, classes, outputs, labels_there, parts, scores_there);
  context_.device.download(lane.stream, scores, scores_there,
                           static_cast<std::size_t>(rows) * sizeof(ClassScore));
  return scores;
}

namespace {

/// What metrics of values read, in the units of the data. Valid until the thread's next call.
void to_data_units(const OutputUnits& units, const Shape& shape, MetricBatch& batch) {
  thread_local std::vector<float> outputs, predictions, labels;  // keep their memory
  const std::int64_t count = batch.n * shape.num_elements();
  const auto convert = [&](const float* values, std::vector<float>& own) {
    if (values == nullptr) return values;
    own.assign(values, values + count);
    units.to_data(own);
    return static_cast<const float*>(own.data());
  };
  const bool same = batch.outputs == batch.predictions;
  batch.outputs = convert(batch.outputs, outputs);
  batch.predictions = same ? batch.outputs : convert(batch.predictions, predictions);
  batch.labels.rows = convert(batch.labels.rows, labels);
}

}  // namespace

void EvaluationMetrics::add_one(std::size_t i, int shard, int thread, MetricBatch batch) {
  const BoundMetric& bound = metrics_[i];
  const MetricSpec::Transform transform = bound.spec.transform;
  if (transform == MetricSpec::Transform::none) batch.predictions = batch.outputs;
  if ((transform == MetricSpec::Transform::softmax || transform == MetricSpec::Transform::sigmoid) &&
      bound.metric->needs_predictions()) {
    float* const own = own_places_[static_cast<std::size_t>(thread)][i].as<float>().data();
    transform_outputs(transform, batch.n, bound.shape, batch.outputs, own);
    batch.predictions = own;
  }
  if (bound.units.changes()) to_data_units(bound.units, bound.shape, batch);
  bound.metric->add(batch, sums_->leaf(shard) + first_[i]);
  const std::int64_t each = bound.metric->records_per_sample();
  if (each == 0) return;
  const auto own_shard = static_cast<std::size_t>(shard - own_.first);
  const std::int64_t at =
      control_.rank() * most_samples_per_rank_ + first_sample_[own_shard] + samples_[own_shard];
  bound.metric->record(batch, records_[i].data() + at * each);
}

void EvaluationMetrics::forward(int operation, const Pass& pass) {
  for (const LayerValue& value : layers_) {
    if (value.operation != operation) continue;
    const auto thread = static_cast<std::size_t>(pass.lane.index);
    const BoundMetric& bound = metrics_[value.metric];
    MetricBatch batch;
    batch.n = pass.n;
    const std::int64_t count = pass.n * bound.shape.num_elements();
    ConstData outputs = pass.outputs[value.output];
    if (outputs.type() != DType::f32) {
      const Data wide(widened_[thread][value.metric].as<float>().data());
      context_.kernels.elementwise.convert(pass.lane, count, outputs, wide);
      outputs = wide;
    }
    batch.outputs = to_host(pass.lane, outputs, count, own_places_[thread][value.metric]);
    if (!context_.device.is_host()) {
      const RecordedCall waiting("the GPU's outputs for the metrics", 0);
      context_.device.synchronize(pass.lane.stream);
    }
    bound.metric->add(batch, sums_->leaf(pass.shard) + first_[value.metric]);
  }
}

std::vector<MetricResult> EvaluationMetrics::finish() {
  sums_->reduce("metrics of the evaluation");
  std::vector<MetricResult> results;
  for (std::size_t m = 0; m < metrics_.size(); ++m) {
    std::vector<ScoreRecord>& records = records_[m];
    if (const std::size_t each = records.size() / static_cast<std::size_t>(control_.size()); each > 0)
      control_.allgather(records.data() + static_cast<std::size_t>(control_.rank()) * each,
                         each * sizeof(ScoreRecord), records.data(), "scores of the evaluation");
    const BoundMetric& bound = metrics_[m];
    results.push_back({bound.name, bound.metric->report(sums_->total(0) + first_[m], records), m});
    if (std::optional<double>& value = results.back().report.value) *value = plain_nan(*value);
    if (bound.columns.empty()) continue;
    MetricReport& report = results.back().report;
    const auto table = std::ranges::find(report.tables, "per_output", &MetricTable::name);
    LOCKSTEP_CHECK(table != report.tables.end() && table->values.size() == bound.columns.size());
    const std::vector<double> values = table->values;
    if (!bound.spec.params.has("per_output") || !bound.spec.params.boolean("per_output"))
      report.tables.erase(table);
    for (std::size_t i = 0; i < values.size(); ++i)
      results.push_back({fmt::format("{}/{}", bound.name, bound.columns[i]), {values[i], {}}, m});
  }
  return results;
}

}  // namespace lockstep

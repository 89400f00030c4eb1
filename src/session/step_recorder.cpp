// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/step_recorder.h"

#include <algorithm>
#include <functional>

#include "comm/host_names.h"
#include "core/hash.h"
#include "core/range.h"

namespace lockstep {

namespace {

constexpr const char *kInput = "input", *kForward = "forward", *kLoss = "loss", *kBackward = "backward",
                     *kSum = "sum", *kUpdate = "update";
/// A row that is gathered with the others and is not part of the record: the samples of each microshard.
constexpr const char* kSamples = "samples";

std::size_t most_shards(const ExecutorContext& context) {
  const int ranks = context.sync.size();
  std::int64_t most = 1;
  for (const Range& range : shards_of_all_ranks(ranks, context.shards)) most = std::max(most, range.size());
  return static_cast<std::size_t>(most);
}

}  // namespace

StepRecorder::StepRecorder(const ExecutorContext& context, const Graph::Calls& calls)
    : context_(context),
      calls_(calls),
      own_(shards_of_rank(context.sync.rank(), context.sync.size(), context.shards)),
      stride_(most_shards(context)),
      of_operation_(calls.operations.size()) {
  samples_ = add_row(kInput, "", kSamples, true);
  features_ = add_row(kInput, "", "features", true);
  const int operations = static_cast<int>(calls.operations.size());
  for (int i = 0; i < operations; ++i) add_operation_forward(i);
  loss_ = add_row(kLoss, "", "loss and correct samples", true);
  d_outputs_ = static_cast<int>(rows_.size());
  for (const Head& head : context.heads)
    add_row(kBackward, "",
            head.name.empty() ? "gradient of the loss" : "gradient of the loss of head " + head.name, true);
  for (int i = operations - 1; i >= 0; --i)
    if (operation_of(i).backward) add_operation_backward(i);
  sums_ = static_cast<int>(rows_.size());
  const std::span<const Variable> variables = context.variables.variables();
  for (std::size_t i = variables.size(); i-- > 0;)
    if (variables[i].trainable) add_row(kSum, "", "gradient of " + variables[i].name, false);
  updates_ = static_cast<int>(rows_.size());
  for (const Variable& variable : variables) add_row(kUpdate, "", variable.name, false);
  hashes_.resize(rows_.size() * stride_);
}

int StepRecorder::add_row(const char* stage, std::string layer, std::string what, bool per_microshard) {
  rows_.push_back({stage, std::move(layer), std::move(what), per_microshard, {}});
  return static_cast<int>(rows_.size()) - 1;
}

void StepRecorder::add_operation_forward(int number) {
  const Graph::Operation& operation = operation_of(number);
  Rows& rows = of_operation_[static_cast<std::size_t>(number)];
  const std::string layer = layer_text(operation);
  if (operation.collective != nullptr)
    rows.forward_sums = add_row(kForward, layer, "statistics of all microshards", false);
  for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
    const int row = add_row(kForward, layer, i == 0 ? "output" : fmt::format("output {}", i), true);
    if (i == 0) rows.outputs = row;
  }
}

void StepRecorder::add_operation_backward(int number) {
  const Graph::Operation& operation = operation_of(number);
  Rows& rows = of_operation_[static_cast<std::size_t>(number)];
  const std::string layer = layer_text(operation);
  rows.variable_gradients = static_cast<int>(rows_.size());
  for (const Variable& variable : variables_of(operation))
    if (variable.trainable) add_row(kBackward, layer, "gradient of " + variable.name, true);
  if (operation.collective != nullptr)
    rows.backward_sums = add_row(kBackward, layer, "gradient sums of all microshards", false);
  rows.input_gradients = static_cast<int>(rows_.size());
  for (const int input : operation.inputs)
    if (calls_.values[static_cast<std::size_t>(input)].wants_gradient)
      add_row(kBackward, layer, fmt::format("gradient of its input from {}", value_text(input)), true);
}

// The layer as the user wrote it, and those that run in the same pass: "conv1 + relu1".
std::string StepRecorder::layer_text(const Graph::Operation& operation) const {
  std::string text = operation.layer->name();
  if (operation.node < 0) return text;
  for (const Graph::Node& node : context_.graph.nodes())
    if (node.fused_into == operation.node) text += " + " + node.layer->name();
  return text;
}

std::string StepRecorder::value_text(int value) const {
  const int producer = calls_.values[static_cast<std::size_t>(value)].producer;
  return producer < 0 ? "features" : operation_of(producer).layer->name();
}

std::span<const Variable> StepRecorder::variables_of(const Graph::Operation& operation) const {
  if (operation.node < 0) return {};
  const Graph::Node& node = context_.graph.nodes()[static_cast<std::size_t>(operation.node)];
  return context_.variables.variables().subspan(
      static_cast<std::size_t>(node.first_variable),
      static_cast<std::size_t>(node.last_variable - node.first_variable));
}

// Of memory of the device, whose queued work ends first.
std::uint64_t StepRecorder::hash_bytes(const void* data, std::size_t bytes) const {
  if (context_.device.is_host()) return hash64(data, bytes);
  std::vector<char> copy(bytes);
  context_.device.copy_to_host(copy.data(), data, bytes);
  return hash64(copy.data(), bytes);
}

void StepRecorder::clear() { std::ranges::fill(hashes_, 0); }

void StepRecorder::fetched(const Microshard& m, const Lane&, const float* features) {
  at(samples_, m.shard) = static_cast<std::uint64_t>(m.n);
  at(features_, m.shard) = hash(features, m.n * context_.graph.features().num_elements());
}

void StepRecorder::forward(int number, const Pass& pass) {
  const Graph::Operation& operation = operation_of(number);
  const int first = of_operation_[static_cast<std::size_t>(number)].outputs;
  for (std::size_t i = 0; i < operation.outputs.size(); ++i) {
    const Graph::Value& value = calls_.values[static_cast<std::size_t>(operation.outputs[i])];
    at(first + static_cast<int>(i), pass.shard) = hash(pass.outputs[i], pass.n * value.shape.num_elements());
  }
}

void StepRecorder::lost(const Microshard& m, const Lane&, std::span<const HeadSums> sums,
                        std::span<const LossStage::Place> places, const LabelBlock&) {
  Hash64 numbers;
  for (const HeadSums& head : sums) {
    numbers.add(&head.sums.loss, sizeof head.sums.loss);
    numbers.add(&head.sums.correct, sizeof head.sums.correct);
  }
  at(loss_, m.shard) = numbers.value();
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i].d_outputs)
      at(d_outputs_ + static_cast<int>(i), m.shard) =
          hash(places[i].d_outputs, m.n * context_.heads[static_cast<int>(i)].shape.num_elements());
}

std::uint64_t StepRecorder::hash(const SparseRows& rows, std::int32_t count, const Variable& table) const {
  const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
  const auto width = static_cast<std::size_t>(table.shape.num_elements() / table.shape[0]);
  const std::uint64_t parts[] = {hash_bytes(rows.rows, bytes), hash_bytes(rows.values, bytes * width)};
  return hash64(parts, sizeof parts);
}

// The count is on the device as well.
std::uint64_t StepRecorder::hash_leaf(const SparseRows& rows, const Variable& table) const {
  std::int32_t count = 0;
  context_.device.copy_to_host(&count, rows.count, sizeof count);
  return hash(rows, count, table);
}

void StepRecorder::variable_gradients(int number, const Pass& pass) {
  int row = of_operation_[static_cast<std::size_t>(number)].variable_gradients;
  for (const Variable& variable : variables_of(operation_of(number)))
    if (variable.trainable)
      at(row++, pass.shard) =
          variable.sparse_index >= 0
              ? hash_leaf(pass.sparse_gradients[variable.sparse_index], variable)
              : hash(pass.gradients + (variable.offset - pass.gradient_base), variable.shape.num_elements());
}

void StepRecorder::backward_local(int number, const Pass& pass) { variable_gradients(number, pass); }

void StepRecorder::backward(int number, const Pass& pass) {
  const Graph::Operation& operation = operation_of(number);
  if (operation.collective == nullptr) variable_gradients(number, pass);
  int row = of_operation_[static_cast<std::size_t>(number)].input_gradients;
  for (std::size_t i = 0; i < operation.inputs.size(); ++i) {
    const Graph::Value& value = calls_.values[static_cast<std::size_t>(operation.inputs[i])];
    if (value.wants_gradient) at(row++, pass.shard) = hash(pass.dx[i], pass.n * value.shape.num_elements());
  }
}

void StepRecorder::synchronised(int number, bool backward, std::span<const double* const> totals) {
  const Rows& rows = of_operation_[static_cast<std::size_t>(number)];
  const CollectiveLayer::CollectiveTraits traits = operation_of(number).collective->collective_traits();
  const int width = (backward ? traits.backward : traits.forward).width;
  std::vector<double> of_all_groups(totals.size() * static_cast<std::size_t>(width));
  double* to = of_all_groups.data();
  for (const double* total : totals) {
    context_.device.copy_to_host(to, total, static_cast<std::size_t>(width) * sizeof(double));
    to += width;
  }
  at(backward ? rows.backward_sums : rows.forward_sums) =
      hash64(of_all_groups.data(), of_all_groups.size() * sizeof(double));
}

void StepRecorder::summed(const float* gradients, const SparseGradients* sparse) {
  int row = sums_;
  const std::span<const Variable> variables = context_.variables.variables();
  const auto hash_rows = [&](const SparseRows& rows, const Variable& table) {
    return hash(rows, *rows.count, table);
  };
  for (std::size_t i = variables.size(); i-- > 0;)
    if (const Variable& variable = variables[i]; variable.trainable)
      at(row++) = variable.sparse_index >= 0
                      ? hash_rows(sparse->total(variable.sparse_index), variable)
                      : hash(gradients + variable.offset, variable.shape.num_elements());
}

StepRecord StepRecorder::gather(Communicator& communicator, bool finished) {
  int row = updates_;
  for (std::size_t i = 0; finished && i < context_.variables.variables().size(); ++i) {
    const Tensor tensor = context_.variables.tensor(static_cast<VariableId>(i));
    at(row++) = hash64(tensor.raw(), tensor.size_bytes());
  }
  const auto ranks = static_cast<std::size_t>(communicator.size());
  std::vector<std::uint64_t> all(ranks * hashes_.size());
  communicator.allgather(hashes_.data(), hashes_.size() * sizeof(std::uint64_t), all.data(),
                         "hashes of the recorded step");

  StepRecord record;
  record.hosts = host_names(communicator);
  const std::vector<Range> shards = shards_of_all_ranks(communicator.size(), context_.shards);
  const std::size_t rows = finished ? rows_.size() : static_cast<std::size_t>(updates_);
  for (std::size_t i = 0; i < rows; ++i) {
    RecordRow gathered = rows_[i];
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * hashes_.size() + i * stride_);
      gathered.hashes.insert(gathered.hashes.end(), first,
                             first + (gathered.per_microshard ? shards[rank].size() : 1));
    }
    if (!gathered.per_microshard &&
        std::ranges::adjacent_find(gathered.hashes, std::not_equal_to()) == gathered.hashes.end())
      gathered.hashes.resize(1);
    if (static_cast<int>(i) == samples_)
      record.samples.assign(gathered.hashes.begin(), gathered.hashes.end());
    else
      record.rows.push_back(std::move(gathered));
  }
  return record;
}

}  // namespace lockstep

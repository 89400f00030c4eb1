// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layer_runner.h"

#include <algorithm>
#include <cstring>

namespace lockstep {

/// Every tensor of a microshard in an aligned buffer of its own, as layers expect.
struct LayerRunner::Part {
  std::int64_t n = 0, first = 0;
  std::vector<Buffer> inputs, input_gradients;
  std::vector<Buffer> outputs, dy, dy2;
  Buffer saved, gradients;
  std::vector<const float*> input_pointers;
  std::vector<float*> dx_pointers;
  std::vector<float*> output_pointers;
  std::vector<const float*> dy_pointers, dy2_pointers;
};

namespace {

Buffer floats(std::int64_t count) { return {cpu_device(), static_cast<std::size_t>(count) * sizeof(float)}; }

void copy(const float* from, std::int64_t count, float* to) {
  if (count > 0) std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
}

}  // namespace

LayerRunner::LayerRunner(Layer& layer, std::initializer_list<Shape> inputs, LayerRunnerOptions options)
    : LayerRunner(layer, std::span<const Shape>(inputs.begin(), inputs.size()), std::move(options)) {}

LayerRunner::LayerRunner(Layer& layer, std::span<const Shape> inputs, LayerRunnerOptions options)
    : layer_(layer), collective_(dynamic_cast<CollectiveLayer*>(&layer)), options_(std::move(options)) {
  const std::vector<Shape> outputs = layer.infer(inputs);
  for (const Shape& shape : inputs) input_elements_.push_back(shape.num_elements());
  for (const Shape& shape : outputs) output_elements_.push_back(shape.num_elements());
  for (int i = 0; i < options_.fused_inputs; ++i) input_elements_.push_back(output_elements_.at(0));
  layer.declare(variables_);
  variables_.commit(cpu_device());
  variables_.initialize(options_.seed);

  std::vector<std::int64_t> sizes = options_.microshards;
  for (std::int64_t n : sizes) num_samples_ += n;
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (!sizes.empty() && sizes.front() == 0) sizes.erase(sizes.begin());
  LOCKSTEP_CHECK(!sizes.empty(), "no samples to run layer {} on", layer.name());
  const std::unique_ptr<bool[]> wants = std::make_unique<bool[]>(input_elements_.size());
  std::fill_n(wants.get(), input_elements_.size(), options_.training);
  layer.prepare(
      {cpu_kernels(), cpu_device(), 1, options_.training, sizes, {wants.get(), input_elements_.size()}});
  scratch_ = Buffer(cpu_device(), layer.scratch_bytes());
  lane_ = {.index = 0, .scratch = scratch_.data(), .scratch_bytes = scratch_.size_bytes()};

  for (std::int64_t elements : input_elements_) {
    inputs_.emplace_back(static_cast<std::size_t>(num_samples_ * elements));
    input_gradients_.emplace_back(inputs_.back().size());
  }
  for (std::int64_t elements : output_elements_) {
    outputs_.emplace_back(static_cast<std::size_t>(num_samples_ * elements));
    output_gradients_.emplace_back(outputs_.back().size());
  }
  gradients_.resize(static_cast<std::size_t>(variables_.trainable_elements()));
  const bool two = options_.two_gradients && layer.takes_two_gradients();
  std::int64_t first = 0;
  for (std::int64_t n : options_.microshards) {
    auto part = std::make_shared<Part>();
    part->n = n;
    part->first = first;
    first += n;
    for (std::int64_t elements : input_elements_) {
      part->inputs.push_back(floats(n * elements));
      part->input_gradients.push_back(floats(n * elements));
      part->input_pointers.push_back(static_cast<const float*>(part->inputs.back().data()));
      part->dx_pointers.push_back(static_cast<float*>(part->input_gradients.back().data()));
    }
    for (std::int64_t elements : output_elements_) {
      part->outputs.push_back(floats(n * elements));
      part->dy.push_back(floats(n * elements));
      part->dy2.push_back(two ? floats(n * elements) : Buffer());
      part->output_pointers.push_back(static_cast<float*>(part->outputs.back().data()));
      part->dy_pointers.push_back(static_cast<const float*>(part->dy.back().data()));
      part->dy2_pointers.push_back(static_cast<const float*>(part->dy2.back().data()));
    }
    part->saved = Buffer(cpu_device(), layer.saved_bytes(n));
    part->gradients = floats(variables_.trainable_elements());
    parts_.push_back(std::move(part));
  }
}

Pass LayerRunner::pass(std::size_t shard, float* gradients) {
  Part& part = *parts_[shard];
  return {.kernels = cpu_kernels(),
          .lane = lane_,
          .variables = variables_,
          .training = options_.training,
          .n = part.n,
          .shard = static_cast<int>(shard),
          .seed = options_.seed,
          .step = options_.step,
          .first_sample = part.first,
          .inputs = part.input_pointers.data(),
          .outputs = part.output_pointers.data(),
          .saved = part.saved.data(),
          .dy = part.dy_pointers.data(),
          .dy2 = part.dy2_pointers.data(),
          .dx = part.dx_pointers.data(),
          .gradients = gradients,
          .gradient_base = 0};
}

namespace {

/// Merges the leaves of each group, in order. Returns one total per group.
std::vector<std::vector<double>> totals_of(std::vector<std::vector<double>> leaves, int group,
                                           CollectiveLayer::Merge merge, int width) {
  const std::size_t size = group == 0 ? leaves.size() : static_cast<std::size_t>(group);
  LOCKSTEP_CHECK(leaves.size() % size == 0, "{} microshards in groups of {}", leaves.size(), size);
  std::vector<std::vector<double>> totals;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (i % size == 0)
      totals.push_back(std::move(leaves[i]));
    else
      merge(totals.back().data(), leaves[i].data(), width);
  }
  return totals;
}

std::vector<const double*> pointers(const std::vector<std::vector<double>>& totals) {
  std::vector<const double*> result;
  for (const auto& total : totals) result.push_back(total.data());
  return result;
}

}  // namespace

void LayerRunner::meet_forward() {
  const int width = collective_->forward_width();
  std::vector<std::vector<double>> leaves;
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    leaves.emplace_back(static_cast<std::size_t>(width));
    collective_->forward_local(pass(s, nullptr), leaves.back().data());
  }
  const auto totals =
      totals_of(std::move(leaves), collective_->group_size(), collective_->forward_merge(), width);
  collective_->forward_met(pointers(totals), variables_);
}

void LayerRunner::meet_backward() {
  const int width = collective_->backward_width();
  std::vector<std::vector<double>> leaves;
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    leaves.emplace_back(static_cast<std::size_t>(width));
    collective_->backward_local(pass(s, static_cast<float*>(parts_[s]->gradients.data())),
                                leaves.back().data());
  }
  const auto totals =
      totals_of(std::move(leaves), collective_->group_size(), collective_->backward_merge(), width);
  collective_->backward_met(pointers(totals), variables_);
}

void LayerRunner::forward() {
  layer_.refresh_weights(cpu_kernels(), lane_, variables_);
  for (const auto& part : parts_)
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      copy(inputs_[i].data() + part->first * input_elements_[i], part->n * input_elements_[i],
           static_cast<float*>(part->inputs[i].data()));
  if (is_view()) {
    outputs_[0] = inputs_[0];
    return;
  }
  if (collective_ != nullptr && options_.training) meet_forward();
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    Part& part = *parts_[s];
    if (part.n == 0) continue;
    layer_.forward(pass(s, nullptr));
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      copy(part.output_pointers[i], part.n * output_elements_[i],
           outputs_[i].data() + part.first * output_elements_[i]);
  }
}

void LayerRunner::backward() {
  LOCKSTEP_CHECK(options_.training, "layer {} was prepared for inference", layer_.name());
  if (is_view()) {
    input_gradients_[0] = output_gradients_[0];
    return;
  }
  for (const auto& part : parts_) {
    for (std::size_t o = 0; o < outputs_.size(); ++o) {
      const std::int64_t count = part->n * output_elements_[o];
      const float* given = output_gradients_[o].data() + part->first * output_elements_[o];
      float* dy = static_cast<float*>(part->dy[o].data());
      copy(given, count, dy);
      if (float* dy2 = static_cast<float*>(part->dy2[o].data()); dy2 != nullptr)
        for (std::int64_t i = 0; i < count; ++i) {
          dy2[i] = 0.25F * given[i];  // both parts are exact, so is their sum
          dy[i] = given[i] - dy2[i];
        }
    }
    if (part->gradients.size_bytes() > 0)
      std::memset(part->gradients.data(), 0, part->gradients.size_bytes());
  }
  if (collective_ != nullptr) meet_backward();
  std::vector<double> sums(gradients_.size(), 0.0);
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    Part& part = *parts_[s];
    if (part.n == 0) continue;
    float* gradients = static_cast<float*>(part.gradients.data());
    layer_.backward(pass(s, gradients));
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(gradients[i]);
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      copy(part.dx_pointers[i], part.n * input_elements_[i],
           input_gradients_[i].data() + part.first * input_elements_[i]);
  }
  std::transform(sums.begin(), sums.end(), gradients_.begin(),
                 [](double sum) { return static_cast<float>(sum); });
}

std::span<const float> LayerRunner::gradient(VariableId id) const {
  const Variable& variable = variables_[id];
  LOCKSTEP_CHECK(variable.trainable, "variable {} has no gradient", variable.name);
  return {gradients_.data() + variable.offset, static_cast<std::size_t>(variable.shape.num_elements())};
}

}  // namespace lockstep

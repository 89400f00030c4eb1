// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "model/layer_runner.h"

#include <algorithm>

namespace lockstep {

/// The tensors of one microshard, each in an aligned buffer of its own.
struct LayerRunner::Part {
  std::int64_t n = 0, first = 0;
  std::vector<Buffer> inputs, input_gradients;
  std::vector<Buffer> outputs, dy, dy2;
  Buffer saved, gradients;
  std::vector<ConstData> input_pointers;
  std::vector<Data> dx_pointers, output_pointers, dy_pointers;
  std::vector<ConstData> dy2_pointers;
};

namespace {

Buffer numbers(Device& device, std::int64_t count, DType type) {
  return {device, static_cast<std::size_t>(count) * size_in_bytes(type)};
}

void to_device(Device& device, const float* from, std::int64_t count, DType type, void* to) {
  with_type(type, [&]<typename T>(T) {
    std::vector<T> rounded(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < rounded.size(); ++i) rounded[i] = from_float<T>(from[i]);
    device.copy_from_host(to, rounded.data(), rounded.size() * sizeof(T));
  });
}
void to_host(Device& device, ConstData from, std::int64_t count, float* to) {
  with_type(from.type(), [&]<typename T>(T) {
    std::vector<T> values(static_cast<std::size_t>(count));
    device.copy_to_host(values.data(), from.address(), values.size() * sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = to_float(values[i]);
  });
}

}  // namespace

LayerRunner::LayerRunner(Layer& layer, std::initializer_list<Shape> inputs, LayerRunnerOptions options)
    : LayerRunner(layer, std::span<const Shape>(inputs.begin(), inputs.size()), std::move(options)) {}

LayerRunner::LayerRunner(Layer& layer, std::span<const Shape> inputs, LayerRunnerOptions options)
    : layer_(layer),
      options_(std::move(options)),
      device_(options_.device != nullptr ? *options_.device : cpu_device()),
      kernels_(options_.kernels != nullptr ? *options_.kernels : cpu_kernels()),
      stream_(device_) {
  const std::vector<Shape> outputs = layer.infer(inputs);
  for (const Shape& shape : inputs) input_elements_.push_back(shape.num_elements());
  for (const Shape& shape : outputs) output_elements_.push_back(shape.num_elements());
  for (int i = 0; i < options_.fused_inputs; ++i) input_elements_.push_back(output_elements_.at(0));
  const LayerTraits traits = layer.traits();
  for (std::size_t i = 0; i < input_elements_.size(); ++i)
    input_types_.push_back(traits.input_type(i, options_.type, options_.type));
  output_type_ = traits.output_type(options_.type, options_.type);
  variables_.freeze(options_.frozen);
  layer.declare(variables_);
  collective_ = dynamic_cast<CollectiveLayer*>(&layer);
  if (collective_ != nullptr && !collective_->synchronises()) collective_ = nullptr;
  std::int64_t largest = 0;  // frozen variable
  for (const Variable& variable : variables_.variables())
    if (variable.frozen) largest = std::max(largest, variable.shape.num_elements());
  discarded_ = numbers(device_, largest, DType::f32);
  variables_.commit(device_);
  variables_.initialize(options_.seed);

  std::vector<std::int64_t> sizes = options_.microshards;
  for (std::int64_t n : sizes) num_samples_ += n;
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  if (!sizes.empty() && sizes.front() == 0) sizes.erase(sizes.begin());
  LOCKSTEP_CHECK(!sizes.empty(), "no samples to run layer {} on", layer.name());
  const std::unique_ptr<bool[]> wants = std::make_unique<bool[]>(input_elements_.size());
  std::fill_n(wants.get(), input_elements_.size(), options_.training);
  for (int fixed : options_.fixed_inputs) wants[static_cast<std::size_t>(fixed)] = false;
  const LayerMemory memory = layer.prepare({kernels_,
                                            device_,
                                            1,
                                            options_.training,
                                            sizes,
                                            {wants.get(), input_elements_.size()},
                                            static_cast<int>(options_.microshards.size()),
                                            options_.type});
  scratch_ = Buffer(device_, std::max(memory.scratch_bytes, kernels_.scratch_bytes));
  lane_ = {.index = 0,
           .stream = stream_.get(),
           .scratch = scratch_.data(),
           .scratch_bytes = scratch_.size_bytes()};

  for (std::int64_t elements : input_elements_) {
    inputs_.emplace_back(static_cast<std::size_t>(num_samples_ * elements));
    input_gradients_.emplace_back(inputs_.back().size());
  }
  for (std::int64_t elements : output_elements_) {
    outputs_.emplace_back(static_cast<std::size_t>(num_samples_ * elements));
    output_gradients_.emplace_back(outputs_.back().size());
  }
  gradients_.resize(static_cast<std::size_t>(variables_.trainable_elements()));
  const bool two = options_.two_gradients && traits.takes_two_gradients;
  std::int64_t first = 0;
  for (std::int64_t n : options_.microshards) {
    auto part = std::make_shared<Part>();
    part->n = n;
    part->first = first;
    first += n;
    for (std::size_t i = 0; i < input_elements_.size(); ++i) {
      const DType type = input_types_[i];
      part->inputs.push_back(numbers(device_, n * input_elements_[i], type));
      part->input_gradients.push_back(numbers(device_, n * input_elements_[i], type));
      part->input_pointers.emplace_back(part->inputs.back().data(), type);
      part->dx_pointers.emplace_back(part->input_gradients.back().data(), type);
    }
    for (int fixed : options_.fixed_inputs) part->dx_pointers.at(static_cast<std::size_t>(fixed)) = nullptr;
    for (std::int64_t elements : output_elements_) {
      part->outputs.push_back(numbers(device_, n * elements, output_type_));
      part->dy.push_back(numbers(device_, n * elements, output_type_));
      part->dy2.push_back(two ? numbers(device_, n * elements, output_type_) : Buffer());
      part->output_pointers.emplace_back(part->outputs.back().data(), output_type_);
      part->dy_pointers.emplace_back(part->dy.back().data(), output_type_);
      part->dy2_pointers.emplace_back(part->dy2.back().data(), output_type_);
    }
    part->saved = Buffer(device_, options_.training ? memory.saved_bytes : 0);
    part->gradients = numbers(device_, variables_.trainable_elements(), DType::f32);
    parts_.push_back(std::move(part));
  }
}

Pass LayerRunner::pass(std::size_t shard, float* gradients) {
  Part& part = *parts_[shard];
  return {.kernels = kernels_,
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
          .gradient_base = 0,
          .discarded = static_cast<float*>(discarded_.data())};
}

/// The bits of every output gradient, of all microshards.
std::vector<std::vector<std::byte>> LayerRunner::dy_bits() const {
  std::vector<std::vector<std::byte>> all;
  for (const auto& part : parts_)
    for (const Buffer& dy : part->dy) {
      all.emplace_back(dy.size_bytes());
      device_.copy_to_host(all.back().data(), dy.data(), dy.size_bytes());
    }
  return all;
}

/// Memory for the leaves of all microshards.
void LayerRunner::start_sums(CollectiveLayer::Reduction reduction) {
  const std::size_t bytes = static_cast<std::size_t>(reduction.width) * sizeof(double);
  leaves_ = Buffer(device_, parts_.size() * bytes);
}

double* LayerRunner::leaf(CollectiveLayer::Reduction reduction, std::size_t microshard) const {
  return leaves_.as<double>().data() + microshard * static_cast<std::size_t>(reduction.width);
}

/// Merges the leaves of each group in order, and the totals of the groups. Returns one total per group.
std::vector<const double*> LayerRunner::reduce(CollectiveLayer::Reduction reduction) {
  const int group = collective_->collective_traits().group_size;
  const int shards = static_cast<int>(parts_.size()), size = group == 0 ? shards : group;
  LOCKSTEP_CHECK(shards % size == 0, "{} microshards in groups of {}", shards, size);
  const int groups = shards / size;
  const std::int64_t width = reduction.width;
  totals_ = Buffer(device_, static_cast<std::size_t>((groups + 2) * width) * sizeof(double));
  to_totals_ = {};
  for (int g = 0; g < groups; ++g) {
    const int first = to_totals_.add_input(g * size * width);
    for (int i = 1; i < size; ++i) to_totals_.add_step(first, to_totals_.add_input((g * size + i) * width));
    to_totals_.add_output(first, g * width);
  }
  to_totals_.load(device_);
  to_whole_ = merges_in_order(device_, groups, width);

  double* totals = totals_.as<double>().data();
  const auto merge = [&](const PlannedMerges& plan, double* in) {
    if (reduction.merge == CollectiveLayer::Merge::moments)
      kernels_.norm.merge_moments(lane_, (width - 1) / 2, plan.tree(), in, totals);
    else
      kernels_.norm.merge_sums(lane_, width, plan.tree(), in, totals);
  };
  merge(to_totals_, leaves_.as<double>().data());
  device_.copy(stream_.get(), totals + groups * width, totals,
               static_cast<std::size_t>(width) * sizeof(double));
  merge(to_whole_, totals);
  std::vector<const double*> all;
  for (int g = 0; g < groups; ++g) all.push_back(totals + g * width);
  return all;
}

void LayerRunner::reduce_forward() {
  const CollectiveLayer::Reduction reduction = collective_->collective_traits().forward;
  start_sums(reduction);
  for (std::size_t s = 0; s < parts_.size(); ++s)
    collective_->forward_local(pass(s, nullptr), leaf(reduction, s));
  const std::vector<const double*> totals = reduce(reduction);
  collective_->forward_reduced(
      {kernels_, lane_, variables_, totals, totals.front() + (std::ssize(totals) + 1) * reduction.width});
  stream_.synchronize();
  variables_.device_changed();
}

void LayerRunner::reduce_backward() {
  const CollectiveLayer::Reduction reduction = collective_->collective_traits().backward;
  start_sums(reduction);
  for (std::size_t s = 0; s < parts_.size(); ++s)
    collective_->backward_local(pass(s, static_cast<float*>(parts_[s]->gradients.data())),
                                leaf(reduction, s));
  collective_->backward_reduced({kernels_, lane_, variables_, reduce(reduction), nullptr});
  stream_.synchronize();
}

void LayerRunner::forward() {
  (void)variables_.trainable_values();  // brings the host's copy up to date before to_device()
  variables_.to_device();
  layer_.refresh_weights(kernels_, lane_, variables_, options_.training);
  for (const auto& part : parts_)
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      to_device(device_, inputs_[i].data() + part->first * input_elements_[i], part->n * input_elements_[i],
                input_types_[i], part->inputs[i].data());
  if (is_view()) {
    outputs_[0] = inputs_[0];
    return;
  }
  if (collective_ != nullptr && options_.training) reduce_forward();
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    Part& part = *parts_[s];
    if (part.n == 0) continue;
    layer_.forward(pass(s, nullptr));
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      to_host(device_, part.output_pointers[i], part.n * output_elements_[i],
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
      std::vector<float> dy(given, given + count), dy2(dy.size());
      if (part->dy2[o].data() != nullptr)
        for (std::size_t i = 0; i < dy.size(); ++i) {
          dy2[i] = 0.25F * dy[i];  // both parts are exact, and so is their sum
          dy[i] -= dy2[i];
        }
      to_device(device_, dy.data(), count, output_type_, part->dy[o].data());
      if (part->dy2[o].data() != nullptr)
        to_device(device_, dy2.data(), count, output_type_, part->dy2[o].data());
    }
    device_.zero(stream_.get(), part->gradients.data(), part->gradients.size_bytes());
  }
  const std::vector<std::vector<std::byte>> dy_before = dy_bits();
  if (collective_ != nullptr) reduce_backward();
  std::vector<double> sums(gradients_.size(), 0.0);
  std::vector<float> on_host(gradients_.size());
  for (std::size_t s = 0; s < parts_.size(); ++s) {
    Part& part = *parts_[s];
    if (part.n == 0) continue;
    float* gradients = static_cast<float*>(part.gradients.data());
    layer_.backward(pass(s, gradients));
    to_host(device_, gradients, static_cast<std::int64_t>(on_host.size()), on_host.data());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<double>(on_host[i]);
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (part.dx_pointers[i] != nullptr)
        to_host(device_, part.dx_pointers[i], part.n * input_elements_[i],
                input_gradients_[i].data() + part.first * input_elements_[i]);
  }
  LOCKSTEP_CHECK(layer_.traits().overwrites_dy || dy_bits() == dy_before,
                 "layer {} overwrites dy, but its traits do not say so", layer_.name());
  std::transform(sums.begin(), sums.end(), gradients_.begin(),
                 [](double sum) { return static_cast<float>(sum); });
}

std::span<const float> LayerRunner::gradient(VariableId id) const {
  const Variable& variable = variables_[id];
  LOCKSTEP_CHECK(variable.trainable, "variable {} has no gradient", variable.name);
  return {gradients_.data() + variable.offset, static_cast<std::size_t>(variable.shape.num_elements())};
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// positional_embedding: adds a row that depends on the position to each step of a sequence.
#include "config/option.h"
#include "model/layers/sinusoids.h"

#include <algorithm>
#include <cmath>

#include "model/layer_table.h"

namespace lockstep {

namespace {

enum class PositionKind { learned, sinusoidal };
struct PositionalEmbeddingOptions {
  PositionKind kind;
  Node initializer;
};
constexpr ParamSpec kTable[] = {
    option<&PositionalEmbeddingOptions::kind>("kind", "learned", one_of("learned|sinusoidal"),
                                              "a trainable table, or sines and cosines"),
    option<&PositionalEmbeddingOptions::initializer>("initializer", "uniform", {}, "initial table"),
};

}  // namespace

std::vector<float> sinusoids(std::int64_t steps, std::int64_t features) {
  std::vector<float> table;
  for (std::int64_t t = 0; t < steps; ++t)
    for (std::int64_t f = 0; f < features; ++f) {
      const double angle = static_cast<double>(t) /
                           std::pow(10000.0, static_cast<double>(f / 2 * 2) / static_cast<double>(features));
      table.push_back(static_cast<float>(f % 2 == 0 ? std::sin(angle) : std::cos(angle)));
    }
  return table;
}

namespace {

/// y = x + table for steps x features.
class PositionalEmbedding final : public Layer {
 public:
  using Options = PositionalEmbeddingOptions;
  PositionalEmbedding(std::string name, const Options& o)
      : Layer(std::move(name)),
        learned_(o.kind == PositionKind::learned),
        initializer_(make_initializer(o.initializer)) {}

  LayerTraits traits() const override {
    return {.kind = "positional_embedding",
            .inputs = TypeRule::model,
            .outputs = TypeRule::model,
            .backward_reads_input = false};
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1 && inputs[0].rank() == 2, ErrorKind::config,
                     "layer {}: positional_embedding takes one input of steps x features per sample, not {}",
                     name(), inputs.empty() ? "nothing" : inputs[0].to_string());
    shape_ = inputs[0];
    return {shape_};
  }

  void declare(VariableStore& variables) override {
    if (learned_) table_id_ = variables.declare(name() + "/embeddings", shape_, initializer_);
  }

  LayerMemory prepare(const PrepareContext& context) override {
    const auto upload = [&](const std::vector<float>& values) {
      Buffer buffer(context.device, values.size() * sizeof(float));
      context.device.copy_from_host(buffer.data(), values.data(), buffer.size_bytes());
      return buffer;
    };
    if (!learned_ && sinusoids_.data() == nullptr) sinusoids_ = upload(sinusoids(shape_[0], shape_[1]));
    return {};
  }

  void forward(const Pass& pass) override {
    const float* table = learned_ ? pass.value(table_id_) : static_cast<const float*>(sinusoids_.data());
    // Every sample is one row of the matrix: y = (x - 0) * 1 + table.
    pass.kernels.norm.normalize(pass.lane, pass.n, shape_.num_elements(), pass.inputs[0], nullptr, nullptr,
                                table, nullptr, false, pass.outputs[0]);
  }

  void backward(const Pass& pass) override {
    const std::int64_t elements = shape_.num_elements();
    if (learned_ && pass.wants(table_id_))
      pass.kernels.elementwise.mask_and_sum_rows(pass.lane, pass.n, elements, pass.dy[0], nullptr, nullptr,
                                                 pass.gradient(table_id_));
    if (pass.dx[0] != nullptr)
      pass.kernels.elementwise.scale(pass.lane, pass.n * elements, 1.0F, pass.dy[0], pass.dx[0]);
  }

 private:
  bool learned_;
  std::shared_ptr<const Initializer> initializer_;
  Shape shape_;
  VariableId table_id_ = VariableId::none;
  Buffer sinusoids_;
};

}  // namespace

extern const LayerEntry kPositionalEmbeddingLayer = {
    "positional_embedding", "adds a row per position to a sequence", kTable, make_layer<PositionalEmbedding>};

}  // namespace lockstep

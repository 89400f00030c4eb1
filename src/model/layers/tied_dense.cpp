// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// tied_dense: a dense layer whose kernel is the transposed table of an embedding (Press and Wolf 2017,
// arXiv:1608.05859). The primitives take a kernel in x units, so the layer keeps a transposed copy of the
// table, made before each step, and transposes the gradient.
#include <algorithm>

#include "config/option.h"
#include "core/buffer.h"
#include "model/borrowing_layer.h"
#include "model/layer_table.h"
#include "model/layers/scratch.h"
#include "model/layers/weight_packs.h"

namespace lockstep {

namespace {

struct TiedDenseOptions {
  std::int64_t units = 0;
};
constexpr ParamSpec kTable[] = {option<&TiedDenseOptions::units>(
    "units", kRequired, between(1, 16777216), "number of outputs: the rows of the embedding")};

/// y = x E^T. x has F features per sample, or per step of a sequence {T, F}; E is units x F.
class TiedDense final : public Layer, public BorrowingLayer {
 public:
  using Options = TiedDenseOptions;
  TiedDense(std::string name, const Options& o) : Layer(std::move(name)), units_(o.units) {}

  std::string_view owner_kind() const override { return "embedding"; }
  LayerTraits traits() const override {
    return {.kind = "tied_dense",
            .inputs = TypeRule::model,
            .outputs = TypeRule::model,
            .flops_per_sample = 2.0 * static_cast<double>(steps_ * in_) * static_cast<double>(units_),
            .widened_products = packs_.widened()};
  }
  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    LOCKSTEP_REQUIRE(inputs.size() == 1 && (inputs[0].rank() == 1 || inputs[0].rank() == 2),
                     ErrorKind::config,
                     "layer {}: tied_dense takes one input of features, or of steps x features, per sample, "
                     "not {}",
                     name(), inputs.empty() ? "nothing" : inputs[0].to_string());
    const bool sequence = inputs[0].rank() == 2;
    steps_ = sequence ? inputs[0][0] : 1;
    in_ = inputs[0].last();
    transposition_ = {};
    transposition_.add_axis(1, in_ * units_, in_ * units_);
    transposition_.add_axis(in_, 1, units_);
    transposition_.add_axis(units_, in_, 1);
    return {sequence ? Shape{steps_, units_} : Shape{units_}};
  }
  void declare(VariableStore& variables) override {
    table_ = variables.declare(name() + "/embeddings", Shape{units_, in_}, make_initializer("uniform"));
  }
  LayerMemory prepare(const PrepareContext& context) override {
    LayerMemory memory;
    if (kernel_.size_bytes() == 0)
      kernel_ = Buffer(context.device, static_cast<std::size_t>(in_ * units_) * sizeof(float));
    const std::size_t gradient = context.training ? gradient_bytes() : 0;
    for (std::int64_t n : context.sample_counts) {
      auto primitive = context.kernels.make.dense(
          {.n = n * steps_, .in = in_, .out = units_, .training = context.training, .dtype = context.type},
          context.lanes);
      memory.scratch_bytes = std::max(memory.scratch_bytes, gradient + primitive->scratch_bytes());
      const std::size_t pack = packs_.add(context, *primitive);
      sized_.push_back({n, context.training, std::move(primitive), pack});
    }
    return memory;
  }
  void refresh_weights(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                       bool /*training*/) override {
    kernels.layout.copy(lane, transposition_, 1, variables.value(table_), kernel_.as<float>().data());
    packs_.refresh(lane, kernel());
  }
  void forward(const Pass& pass) override {
    const Sized& made = sized(pass);
    made.primitive->forward(pass.lane, pass.inputs[0], kernel(), packs_[made.pack], nullptr, pass.outputs[0]);
  }
  void backward(const Pass& pass) override {
    const Sized& made = sized(pass);
    if (pass.wants(table_)) {
      Scratch scratch(pass.lane.scratch);
      float* const gradient = scratch.take<float>(in_ * units_);
      made.primitive->backward_weights(scratch.rest_of(pass.lane), pass.inputs[0], pass.dy[0], gradient);
      pass.kernels.layout.copy(pass.lane, transposition_.reversed(), 1, gradient, pass.gradient(table_));
    }
    if (pass.dx[0] != nullptr)
      made.primitive->backward_data(pass.lane, pass.dy[0], kernel(), packs_[made.pack], pass.dx[0]);
  }

 private:
  struct Sized {
    std::int64_t n;
    bool training;
    std::unique_ptr<LinearPrimitive> primitive;
    std::size_t pack;  ///< in packs_
  };
  const Sized& sized(const Pass& pass) const {
    for (const Sized& candidate : sized_)
      if (candidate.n == pass.n && candidate.training == pass.training) return candidate;
    LOCKSTEP_CHECK(false, "layer {} was not prepared for {} samples", name(), pass.n);
    return sized_.front();
  }
  const float* kernel() const { return static_cast<const float*>(kernel_.data()); }
  std::size_t gradient_bytes() const {
    Scratch scratch;
    scratch.take<float>(in_ * units_);
    return scratch.used_bytes();
  }

  std::int64_t units_, in_ = 0, steps_ = 1;
  StridedCopy transposition_;  ///< of the table
  Buffer kernel_;              ///< in x units
  VariableId table_ = VariableId::none;
  std::vector<Sized> sized_;
  WeightPacks packs_;
};

}  // namespace

extern const LayerEntry kTiedDenseLayer = {
    "tied_dense", "y = x E^T with the table E of the embedding that shared_with names: tied embeddings",
    kTable, make_layer<TiedDense>};

}  // namespace lockstep

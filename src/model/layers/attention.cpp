// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// attention: multi-head attention with its projections (Vaswani et al. 2017, section 3.2.2).
#include <algorithm>

#include "config/option.h"
#include "core/philox.h"
#include "core/sizes.h"
#include "model/attention_maps.h"
#include "model/layer_table.h"
#include "model/layers/lengths.h"
#include "model/layers/projection.h"
#include "model/scheduled_layer.h"

namespace lockstep {

namespace {

struct AttentionOptions {
  std::int64_t units = 0, heads = 1;
  bool causal = false, bias = true;
  LayerNumber dropout;
  Node kernel_initializer, bias_initializer;
};
using Options = AttentionOptions;
constexpr ParamSpec kTable[] = {
    option<&Options::units>("units", kRequired, between(1, 16777216),
                            "width of the output, and of all heads together"),
    option<&Options::heads>("heads", "1", between(1, 65536), "number of heads; units is a multiple of it"),
    option<&Options::causal>("causal", "false", {},
                             "a position attends only to itself and to earlier positions"),
    option<&Options::bias>("bias", "true", {}, "add a bias in each projection"),
    option<&Options::dropout>("dropout", "0", kScheduledShare,
                              "fraction of the attention probabilities set to zero in training"),
    option<&Options::kernel_initializer>("kernel_initializer", "glorot_uniform", {},
                                         "initial kernels of the projections"),
    option<&Options::bias_initializer>("bias_initializer", "zeros", {}, "initial biases"),
};

bool is_lengths(const Shape& shape) { return shape == Shape{1}; }

/// Inputs: [x], [x, lengths], [query, memory] or [query, memory, lengths]. x, query and memory have rank 2;
/// lengths have shape {1}.
class Attention final : public Layer, public ScheduledLayer, public AttentionMaps {
 public:
  using Options = AttentionOptions;
  Attention(std::string name, const Options& o, const Params& p)
      : Layer(std::move(name)),
        units_(o.units),
        causal_(o.causal),
        bias_(o.bias),
        rate_(o.dropout),
        kernel_initializer_(make_initializer(o.kernel_initializer)),
        bias_initializer_(make_initializer(o.bias_initializer)) {
    shape_.heads = o.heads;
    if (units_ % shape_.heads != 0)
      throw p.error(option_name<&Options::heads>(p),
                    fmt::format("{} units are not a multiple of {} heads", units_, shape_.heads));
    shape_.head_size = units_ / shape_.heads;
    shape_.causal = causal_;
  }

  std::vector<LayerNumber*> numbers() override { return {&rate_}; }
  LayerTraits traits() const override {
    LayerTraits traits{.kind = "attention",
                       .inputs = TypeRule::model,
                       .outputs = TypeRule::model,
                       .float32_input = lengths_input_,
                       .overwrites_dy = lengths_input_ >= 0,
                       .flops_per_sample = flops_};
    for (const Projection* product : {&into_, &memory_, &output_})
      if (traits.widened_products.empty()) traits.widened_products = product->widened_products();
    return traits;
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    const std::size_t count = inputs.size();
    const bool lengths = count >= 2 && is_lengths(inputs[count - 1]);
    const std::size_t sequences = count - (lengths ? 1 : 0);
    bool fits = sequences == 1 || sequences == 2;
    std::string got;
    for (std::size_t i = 0; i < count; ++i) {
      fits = fits && (i >= sequences || inputs[i].rank() == 2);
      got += (i == 0 ? "" : ", ") + inputs[i].to_string();
    }
    LOCKSTEP_REQUIRE(fits, ErrorKind::config,
                     "layer {}: attention takes a sequence of steps x features, optionally a second sequence "
                     "to attend to, and optionally lengths of shape 1; it got {}",
                     name(), got.empty() ? "nothing" : got);
    memory_input_ = sequences == 2 ? 1 : 0;
    lengths_input_ = lengths ? static_cast<int>(sequences) : -1;
    const Shape &query = inputs[0], &memory = inputs[static_cast<std::size_t>(memory_input_)];
    LOCKSTEP_REQUIRE(!causal_ || !crosses(), ErrorKind::config,
                     "layer {}: attention to another sequence cannot be causal", name());
    shape_.self = !crosses();
    shape_.queries = query[0];
    shape_.keys = memory[0];
    shape_.query_stride = into_width();
    shape_.key_stride = crosses() ? 2 * units_ : into_width();
    shape_.lengths = lengths;
    if (crosses()) {
      into_ = Projection(query[0], query[1], units_, bias_);
      memory_ = Projection(memory[0], memory[1], 2 * units_, bias_);
    } else {
      into_ = Projection(query[0], query[1], 3 * units_, bias_);
    }
    output_ = Projection(query[0], units_, units_, bias_);
    const std::int64_t scores[] = {shape_.heads, query[0], memory[0]};
    LOCKSTEP_REQUIRE(product_up_to(kMaxElements, scores), ErrorKind::config,
                     "layer {}: the scores of {} heads x {} x {} steps would take {} per sample", name(),
                     shape_.heads, query[0], memory[0], size_text(product_in_double(scores) * sizeof(float)));
    const double keys = static_cast<double>(shape_.keys) * (causal_ ? 0.5 : 1.0);
    flops_ = 2.0 * static_cast<double>(units_) *
             (static_cast<double>(query.num_elements() * (crosses() ? 1 : 3)) +
              static_cast<double>(crosses() ? 2 * memory.num_elements() : 0) +
              static_cast<double>(query[0] * units_) + 2.0 * static_cast<double>(query[0]) * keys);
    return {Shape{query[0], units_}};
  }

  void declare(VariableStore& variables) override {
    into_.declare(variables, name() + (crosses() ? "/query" : "/qkv"), kernel_initializer_,
                  bias_initializer_);
    if (crosses()) memory_.declare(variables, name() + "/memory", kernel_initializer_, bias_initializer_);
    output_.declare(variables, name() + "/output", kernel_initializer_, bias_initializer_);
  }

  LayerMemory prepare(const PrepareContext& context) override {
    on_host_ = context.device.is_host();
    type_ = context.type;
    kernels_ = &context.kernels.attention;
    into_.prepare(context, type_);
    if (crosses()) memory_.prepare(context, type_);
    output_.prepare(context, type_);
    LayerMemory memory;
    for (std::int64_t n : context.sample_counts) {
      const AttentionShape shape = shape_for(n, context.training);
      Scratch forward, backward;
      if (!context.training) (void)Kept(*this, forward, n, false);
      (void)Gradients(*this, backward, n);
      const std::size_t own = std::max(forward.used_bytes(), context.training ? backward.used_bytes() : 0);
      const bool kept = context.training && kernels_->kept_bytes(shape, type_) > 0;
      const std::size_t others =
          std::max({kernels_->scratch_bytes(shape, type_, kept, context.training), into_.scratch_bytes(),
                    memory_.scratch_bytes(), output_.scratch_bytes()});
      memory.scratch_bytes = std::max(memory.scratch_bytes, own + others);
    }
    if (context.training) {
      Scratch saved;
      (void)Kept(*this, saved, context.max_samples(), true);
      memory.saved_bytes = saved.used_bytes();
    }
    return memory;
  }

  void refresh_weights(const KernelTable&, const Lane& lane, const VariableStore& variables,
                       bool /*training*/) override {
    into_.refresh(lane, variables);
    if (crosses()) memory_.refresh(lane, variables);
    output_.refresh(lane, variables);
  }

  void forward(const Pass& pass) override {
    if (lengths_input_ >= 0 && on_host_)
      longest_of(*this, pass.inputs[lengths_input_], pass.n, pass.first_sample, shape_.keys);
    Scratch scratch(pass.training ? pass.saved : pass.lane.scratch);
    const Kept kept(*this, scratch, pass.n, pass.training);
    const Lane lane = pass.training ? pass.lane : scratch.rest_of(pass.lane);
    into_.forward(pass, lane, pass.inputs[0], kept.into);
    if (crosses()) memory_.forward(pass, lane, pass.inputs[memory_input_], kept.memory);
    pass.kernels.attention.forward(lane, shape_for(pass.n, pass.training), inputs_of(pass, kept),
                                   dropout_of(pass), kept.attention, kept.heads);
    output_.forward(pass, lane, kept.heads, pass.outputs[0]);
    zero_past(pass, pass.outputs[0]);
  }

  View attention_view(const Pass& pass) const override {
    Scratch saved(pass.saved);
    return {shape_for(pass.n, true), inputs_of(pass, Kept(*this, saved, pass.n, true))};
  }

  void backward(const Pass& pass) override {
    Scratch saved(pass.saved), scratch(pass.lane.scratch);
    const Kept kept(*this, saved, pass.n, true);
    const Gradients gradients(*this, scratch, pass.n);
    const Lane lane = scratch.rest_of(pass.lane);
    const Data dy = pass.dy[0];
    zero_past(pass, dy);
    output_.backward(pass, lane, kept.heads, dy, gradients.heads);
    const Data memory = crosses() ? gradients.memory : gradients.into.offset(units_);
    pass.kernels.attention.backward(lane, shape_for(pass.n, true), inputs_of(pass, kept), dropout_of(pass),
                                    kept.attention, kept.heads, gradients.heads,
                                    {gradients.into, memory, memory.offset(units_)});
    into_.backward(pass, lane, pass.inputs[0], gradients.into, pass.dx[0]);
    if (crosses())
      memory_.backward(pass, lane, pass.inputs[memory_input_], gradients.memory, pass.dx[memory_input_]);
    if (lengths_input_ >= 0 && pass.dx[lengths_input_] != nullptr)
      pass.kernels.elementwise.zero(pass.lane, pass.n, pass.dx[lengths_input_]);
  }

 private:
  static Data take(Scratch& scratch, DType type, std::int64_t count) {
    return {scratch.take<std::byte>(count * static_cast<std::int64_t>(size_in_bytes(type))), type};
  }

  /// What forward keeps for backward. In inference it is scratch memory, without the kernels' part.
  struct Kept {
    Kept(const Attention& layer, Scratch& memory_of, std::int64_t n, bool training)
        : into(take(memory_of, layer.type_, n * layer.shape_.queries * layer.into_width())),
          memory(
              take(memory_of, layer.type_, layer.crosses() ? n * layer.shape_.keys * 2 * layer.units_ : 0)),
          heads(take(memory_of, layer.type_, n * layer.shape_.queries * layer.units_)) {
      const std::size_t bytes =
          training ? layer.kernels_->kept_bytes(layer.shape_for(n, true), layer.type_) : 0;
      if (bytes > 0) attention = memory_of.take<std::byte>(static_cast<std::int64_t>(bytes));
    }
    Data into;                  ///< q, k and v side by side; only q with a memory
    Data memory;                ///< k and v side by side
    Data heads;                 ///< outputs of the heads, side by side
    void* attention = nullptr;  ///< what the kernels keep
  };
  /// The gradients of the arrays in Kept.
  struct Gradients {
    Gradients(const Attention& layer, Scratch& scratch, std::int64_t n)
        : into(take(scratch, layer.type_, n * layer.shape_.queries * layer.into_width())),
          memory(take(scratch, layer.type_, layer.crosses() ? n * layer.shape_.keys * 2 * layer.units_ : 0)),
          heads(take(scratch, layer.type_, n * layer.shape_.queries * layer.units_)) {}
    Data into, memory, heads;
  };

  bool crosses() const { return memory_input_ != 0; }
  std::int64_t into_width() const { return (crosses() ? 1 : 3) * units_; }
  AttentionShape shape_for(std::int64_t n, bool training) const {
    AttentionShape shape = shape_;
    shape.n = n;
    shape.dropout = training && !rate_.is_zero();
    return shape;
  }
  AttentionInputs inputs_of(const Pass& pass, const Kept& kept) const {
    const Data memory = crosses() ? kept.memory : kept.into.offset(units_);
    return {.q = kept.into,
            .k = memory,
            .v = memory.offset(units_),
            .lengths = lengths_input_ < 0 ? nullptr : pass.inputs[lengths_input_].f32()};
  }
  AttentionDropout dropout_of(const Pass& pass) const {
    return {.rate = rate_.value(),
            .seed = pass.seed,
            .purpose = philox_purpose(name()),
            .step = static_cast<std::uint32_t>(pass.step),
            .first_sample = static_cast<std::uint32_t>(pass.first_sample)};
  }
  void zero_past(const Pass& pass, Data x) const {
    if (lengths_input_ >= 0 && !crosses())
      pass.kernels.attention.zero_past(pass.lane, pass.n, shape_.queries, units_, pass.inputs[lengths_input_],
                                       x);
  }

  std::int64_t units_;
  bool causal_, bias_, on_host_ = true;
  LayerNumber rate_;
  DType type_ = DType::f32;  ///< of activations
  const AttentionKernels* kernels_ = nullptr;
  std::shared_ptr<const Initializer> kernel_initializer_, bias_initializer_;
  AttentionShape shape_;  ///< without n
  int memory_input_ = 0, lengths_input_ = -1;
  Projection into_, memory_, output_;
  double flops_ = 0;
};

}  // namespace

extern const LayerEntry kAttentionLayer = {"attention", "multi-head attention with its projections", kTable,
                                           make_layer<Attention>};

}  // namespace lockstep

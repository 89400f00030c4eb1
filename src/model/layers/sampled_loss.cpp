// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// nce (Gutmann and Hyvarinen 2010), sampled_softmax (Jean et al. 2015) and negative_sampling (Mikolov et al.
// 2013): the loss of a very wide last layer, computed from a sample of its outputs. Only the rows of sampled
// classes and of targets get a gradient.
#include <algorithm>

#include "config/option.h"
#include "core/philox.h"
#include "model/layer_table.h"
#include "model/layers/class_distribution.h"
#include "model/layers/projection.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMaxClasses = std::int64_t{1} << 24;  ///< ids are float32 whole numbers

struct SampledLossOptions {
  std::int64_t classes = 0, drawn = 0;
  bool remove_accidental_hits = true, subtract_log_q = false, bias = true;
  std::optional<std::string> counts;
  double power = 0;
  Node weights_initializer, biases_initializer;
};
using Options = SampledLossOptions;
constexpr ParamSpec kClasses = option<&Options::classes>(
    "classes", kRequired, between(2, 2147483647),
    "number of classes; for the log-uniform sampler in decreasing order of frequency");
constexpr ParamSpec kSampled =
    option<&Options::drawn>("sampled", kRequired, between(1, 16777216),
                            "distinct classes drawn for a global batch; at most half of all");
constexpr ParamSpec remove_hits(std::string_view fallback) {
  return option<&Options::remove_accidental_hits>("remove_accidental_hits", fallback, {},
                                                  "ignore a sampled class for samples whose target it is");
}
constexpr ParamSpec kSubtract = option<&Options::subtract_log_q>(
    "subtract_log_q", "true", {}, "subtract the logarithm of a class's expected count from its logit");
constexpr ParamSpec bias(std::string_view fallback) {
  return option<&Options::bias>("bias", fallback, {}, "each class has a bias");
}
constexpr ParamSpec kWeights = option<&Options::weights_initializer>("weights_initializer", "glorot_uniform",
                                                                     {}, "initial weights (classes x units)");
constexpr ParamSpec kBiases =
    option<&Options::biases_initializer>("biases_initializer", "zeros", {}, "initial biases");

constexpr ParamSpec kNceTable[] = {kClasses, kSampled, remove_hits("false"), kSubtract, bias("true"),
                                   kWeights, kBiases};
constexpr ParamSpec kSampledSoftmaxTable[] = {
    kClasses, kSampled, remove_hits("true"), kSubtract, bias("true"), kWeights, kBiases};
constexpr ParamSpec kNegativeSamplingTable[] = {
    kClasses,
    option<&Options::drawn>("negatives", "5", between(1, 65536),
                            "classes drawn for each sample, with repetitions"),
    option<&Options::counts>(
        "counts", "null", {},
        "file with a line `word<tab>count` per class, such as vocabulary.txt; null: log-uniform"),
    option<&Options::power>("power", "0.75", above(0).up_to(10),
                            "the probability of a class is proportional to count^power"),
    bias("false"),
    kWeights,
    kBiases,
};

enum class Method { nce, sampled_softmax, negative_sampling };

/// Inputs: hidden {units}, targets {num_true}. Output: the loss per sample {1}.
class SampledLossLayer final : public Layer {
 public:
  SampledLossLayer(std::string name, const Options& o, const Params& p, Method method)
      : Layer(std::move(name)),
        method_(method),
        classes_(o.classes),
        sampled_(o.drawn),
        remove_hits_(o.remove_accidental_hits),
        subtract_log_q_(o.subtract_log_q),
        bias_(o.bias),
        weights_initializer_(make_initializer(o.weights_initializer)),
        biases_initializer_(make_initializer(o.biases_initializer)) {
    if (classes_ >= kMaxClasses)
      throw p.error(
          option_name<&Options::classes>(p),
          fmt::format("{} classes; ids are float32 whole numbers, exact below {}", classes_, kMaxClasses));
    if (shared() && 2 * sampled_ > classes_)
      throw p.error(option_name<&Options::drawn>(p),
                    fmt::format("{} of {} classes; at most half of them can be drawn", sampled_, classes_),
                    "a dense layer with softmax_cross_entropy costs less then");
    probabilities_ =
        o.counts ? unigram_probabilities(*o.counts, classes_, o.power) : log_uniform_probabilities(classes_);
  }

  LayerTraits traits() const override {
    return {
        .kind = method_ == Method::nce ? "nce"
                : shared()             ? "sampled_softmax"
                                       : "negative_sampling",
        .flops_per_sample = 2.0 * static_cast<double>(units_) * static_cast<double>(sampled_ + num_true_)};
  }

  std::vector<Shape> infer(std::span<const Shape> inputs) override {
    const bool fits = inputs.size() == 2 && inputs[0].rank() == 1 && inputs[1].rank() == 1;
    LOCKSTEP_REQUIRE(
        fits, ErrorKind::config,
        "layer {}: {} takes two inputs of rank 1 per sample, features and target classes, not {}", name(),
        kind(),
        inputs.size() == 2 ? inputs[0].to_string() + " and " + inputs[1].to_string()
                           : fmt::format("{} inputs", inputs.size()));
    units_ = inputs[0][0];
    num_true_ = inputs[1][0];
    LOCKSTEP_REQUIRE(shared() || num_true_ == 1, ErrorKind::config,
                     "layer {}: negative_sampling takes one target class per sample, not {}", name(),
                     num_true_);
    return {Shape{1}};
  }

  void declare(VariableStore& variables) override {
    weights_id_ = variables.declare_table(
        name() + "/weights", Shape{classes_, units_}, weights_initializer_,
        {.per_sample = num_true_ + (shared() ? 0 : sampled_), .per_step = shared() ? sampled_ : 0});
    if (bias_) biases_id_ = variables.declare(name() + "/biases", Shape{classes_}, biases_initializer_);
  }

  LayerMemory prepare(const PrepareContext& context) override {
    if (distribution_.empty()) distribution_ = DeviceDistribution(context.device, probabilities_);
    LayerMemory memory;
    for (std::int64_t n : context.sample_counts) {
      Sized sized{n, context.training, nullptr};
      // The product is transposed: its input has a number per class, and each row of its matrix is a class's
      // weights.
      if (shared() || !context.training)
        sized.classes_to_units = context.kernels.make.dense(
            {.n = n, .in = context.training ? sampled_ : classes_, .out = units_}, context.lanes);
      std::size_t rest = context.kernels.scratch_bytes;  // in addition to the layer's own parts
      if (sized.classes_to_units != nullptr) {
        LOCKSTEP_CHECK(sized.classes_to_units->packed_bytes() == 0,
                       "a dense primitive that packs its weights");
        rest = std::max(rest, sized.classes_to_units->scratch_bytes());
      }
      Scratch forward, backward;
      if (context.training) {
        rest = std::max({rest, context.kernels.embedding.group_bytes(positions(n)),
                         context.kernels.embedding.sum_bytes(positions(n), units_),
                         context.kernels.sampling.draw_bytes(sampled_)});
        (void)Forward(*this, forward, n);
        (void)Backward(*this, backward, n);
      } else {
        (void)Full(*this, forward, n);
      }
      memory.scratch_bytes =
          std::max(memory.scratch_bytes, std::max(forward.used_bytes(), backward.used_bytes()) + rest);
      sized_.push_back(std::move(sized));
    }
    if (context.training) {
      Scratch saved;
      (void)Kept(*this, saved, context.max_samples());
      memory.saved_bytes = saved.used_bytes();
    }
    return memory;
  }

  void forward(const Pass& pass) override {
    if (pass.training)
      forward_sampled(pass);
    else
      forward_full(pass);
  }

  void backward(const Pass& pass) override {
    Scratch saved(pass.saved), scratch(pass.lane.scratch);
    const Kept kept(*this, saved, pass.n);
    const Backward parts(*this, scratch, pass.n);
    const Lane lane = scratch.rest_of(pass.lane);
    const SamplingKernels& sampling = pass.kernels.sampling;
    const ElementwiseKernels& elementwise = pass.kernels.elementwise;
    const std::int64_t drawn = drawn_ids(pass.n), wanted = pass.n * num_true_;
    float *sampled_values = parts.values, *true_values = parts.values + drawn;
    float *sampled_rows = parts.rows, *true_rows = parts.rows + drawn * units_;
    const float *hidden = pass.inputs[0], *weights = pass.value(weights_id_);

    sampling.scale_rows(lane, pass.n, sampled_, kept.sampled, pass.dy[0], parts.sampled);
    sampling.scale_rows(lane, pass.n, num_true_, kept.truth, pass.dy[0], true_values);
    sampling.outer_rows(lane, pass.n, num_true_, units_, true_values, hidden, true_rows);
    if (shared()) {
      const LinearPrimitive& product = *sized(pass).classes_to_units;
      elementwise.mask_and_sum_rows(lane, pass.n, sampled_, parts.sampled, nullptr, nullptr, sampled_values);
      product.backward_weights(lane, parts.sampled, hidden, sampled_rows);
      if (pass.dx[0] != nullptr)
        product.forward(lane, parts.sampled, kept.rows, nullptr, nullptr, pass.dx[0]);
    } else {
      elementwise.scale(lane, drawn, 1.0F, parts.sampled, sampled_values);
      sampling.outer_rows(lane, pass.n, sampled_, units_, parts.sampled, hidden, sampled_rows);
      if (pass.dx[0] != nullptr)
        sampling.add_rows(lane, pass.n, sampled_, units_, classes_, parts.sampled, kept.ids, weights, false,
                          pass.dx[0]);
    }
    if (pass.dx[0] != nullptr)
      sampling.add_rows(lane, pass.n, num_true_, units_, classes_, true_values, kept.ids + drawn, weights,
                        true, pass.dx[0]);
    if (pass.dx[1] != nullptr) elementwise.zero(lane, wanted, pass.dx[1]);

    const bool wants_biases = bias_ && pass.wants(biases_id_);
    if (!pass.wants(weights_id_) && !wants_biases) return;
    const EmbeddingKernels& embedding = pass.kernels.embedding;
    const SparseRows* sparse = pass.sparse_gradient(weights_id_);
    TouchedRows touched = TouchedRows::carve(parts.touched, drawn + wanted);
    if (sparse != nullptr) touched = touched.with(sparse->rows, sparse->count);
    embedding.group_by_row(lane, drawn + wanted, classes_, kept.ids, -1, lane.scratch, touched);
    if (sparse != nullptr) {
      embedding.accumulate(lane, drawn + wanted, units_, touched, parts.rows, false, lane.scratch,
                           sparse->values);
    } else if (pass.wants(weights_id_)) {
      elementwise.zero(lane, classes_ * units_, pass.gradient(weights_id_));
      embedding.accumulate(lane, drawn + wanted, units_, touched, parts.rows, true, lane.scratch,
                           pass.gradient(weights_id_));
    }
    if (!wants_biases) return;
    elementwise.zero(lane, classes_, pass.gradient(biases_id_));
    embedding.accumulate(lane, drawn + wanted, 1, touched, parts.values, true, lane.scratch,
                         pass.gradient(biases_id_));
  }

 private:
  /// Kept from forward to backward.
  struct Kept {
    Kept(const SampledLossLayer& layer, Scratch& saved, std::int64_t n)
        : ids(saved.take<float>(layer.positions(n))),
          truth(saved.take<float>(n * layer.num_true_)),
          sampled(saved.take<float>(n * layer.sampled_)),
          rows(saved.take<float>(layer.shared() ? layer.sampled_ * layer.units_ : 0)) {}
    float* ids;      ///< sampled classes, then targets
    float* truth;    ///< logits, then gradients of the true classes
    float* sampled;  ///< of the sampled classes
    float* rows;     ///< weights of the shared sampled classes
  };
  struct Forward {
    Forward(const SampledLossLayer& layer, Scratch& scratch, std::int64_t n)
        : tries(scratch.take<double>(1)), offsets(scratch.take<float>(layer.positions(n))) {}
    double* tries;
    float* offsets;  ///< like Kept::ids
  };
  struct Backward {
    Backward(const SampledLossLayer& layer, Scratch& scratch, std::int64_t n)
        : sampled(scratch.take<float>(n * layer.sampled_)),
          values(scratch.take<float>(layer.positions(n))),
          rows(scratch.take<float>(layer.positions(n) * layer.units_)),
          touched(scratch.take<std::int32_t>(TouchedRows::words(layer.positions(n)))) {}
    float* sampled;  ///< gradients of the sampled logits
    float* values;   ///< of biases, by position of Kept::ids
    float* rows;     ///< of weights, by position of Kept::ids
    std::int32_t* touched;
  };
  struct Full {
    Full(const SampledLossLayer& layer, Scratch& scratch, std::int64_t n)
        : logits(scratch.take<float>(n * layer.classes_)),
          truth(scratch.take<float>(n * layer.num_true_)),
          offsets(scratch.take<float>(n * layer.num_true_)) {}
    float* logits;
    float* truth;
    float* offsets;
  };
  struct Sized {
    std::int64_t n;
    bool training;
    std::unique_ptr<LinearPrimitive> classes_to_units;
  };

  /// Whether all samples of the global batch share one set of sampled classes.
  bool shared() const { return method_ != Method::negative_sampling; }
  std::int64_t drawn_ids(std::int64_t n) const { return shared() ? sampled_ : n * sampled_; }
  std::int64_t positions(std::int64_t n) const { return drawn_ids(n) + n * num_true_; }
  const float* biases(const Pass& pass) const { return bias_ ? pass.value(biases_id_) : nullptr; }
  const Sized& sized(const Pass& pass) const {
    for (const Sized& candidate : sized_)
      if (candidate.n == pass.n && candidate.training == pass.training) return candidate;
    LOCKSTEP_CHECK(false, "layer {} was not prepared for {} samples", name(), pass.n);
    return sized_.front();
  }
  SampledProblem problem(const Pass& pass) const {
    return {.loss = method_ == Method::sampled_softmax ? SampledLoss::softmax : SampledLoss::sigmoid,
            .n = pass.n,
            .num_true = num_true_,
            .sampled = sampled_,
            .targets = pass.inputs[1],
            .ids_stride = shared() ? 0 : sampled_,
            .remove_hits = remove_hits_};
  }
  void check_targets(const Pass& pass, std::int64_t bad) const {
    if (bad >= 0)
      throw Error(
          ErrorKind::data,
          fmt::format("layer {}: sample {} of the global batch has the target {}, but classes are 0 to {}",
                      name(), pass.first_sample + bad / num_true_, static_cast<double>(pass.inputs[1][bad]),
                      classes_ - 1),
          {}, "give the layer as many classes as the data has");
  }

  void forward_sampled(const Pass& pass) const {
    Scratch saved(pass.saved), scratch(pass.lane.scratch);
    const Kept kept(*this, saved, pass.n);
    const Forward parts(*this, scratch, pass.n);
    const Lane lane = scratch.rest_of(pass.lane);
    const SamplingKernels& sampling = pass.kernels.sampling;
    const ClassDistribution distribution = distribution_.get();
    const DrawKey key{pass.seed, philox_purpose(name()), static_cast<std::uint32_t>(pass.step)};
    const std::int64_t drawn = drawn_ids(pass.n), wanted = pass.n * num_true_;
    const float *hidden = pass.inputs[0], *weights = pass.value(weights_id_);
    if (shared())
      sampling.draw_distinct(lane, distribution, key, sampled_, lane.scratch, kept.ids, parts.tries);
    else
      sampling.draw_each(lane, distribution, key, pass.n, sampled_,
                         static_cast<std::uint32_t>(pass.first_sample), kept.ids);
    pass.kernels.elementwise.scale(lane, wanted, 1.0F, pass.inputs[1], kept.ids + drawn);
    sampling.biases_of(lane, distribution, drawn + wanted, kept.ids, biases(pass), sampled_,
                       subtract_log_q_ ? parts.tries : nullptr, parts.offsets);
    SampledProblem problem = this->problem(pass);
    problem.sampled_ids = kept.ids;
    check_targets(pass, sampling.row_products(lane, pass.n, num_true_, units_, classes_, hidden,
                                              pass.inputs[1], weights, parts.offsets + drawn, kept.truth));
    if (shared()) {
      pass.kernels.embedding.gather(lane, sampled_, classes_, units_, kept.ids, -1, weights, kept.rows);
      sized(pass).classes_to_units->backward_data(lane, hidden, kept.rows, nullptr, kept.sampled);
    } else {
      sampling.row_products(lane, pass.n, sampled_, units_, classes_, hidden, kept.ids, weights,
                            parts.offsets, kept.sampled);
    }
    sampling.loss(lane, problem, shared() ? parts.offsets : nullptr, kept.truth, kept.sampled,
                  pass.outputs[0]);
  }

  /// The loss over all classes, for inference.
  void forward_full(const Pass& pass) const {
    Scratch scratch(pass.lane.scratch);
    const Full parts(*this, scratch, pass.n);
    const Lane lane = scratch.rest_of(pass.lane);
    const SamplingKernels& sampling = pass.kernels.sampling;
    const float *hidden = pass.inputs[0], *weights = pass.value(weights_id_);
    sampling.biases_of(lane, distribution_.get(), pass.n * num_true_, pass.inputs[1], biases(pass), 0,
                       nullptr, parts.offsets);
    check_targets(pass, sampling.row_products(lane, pass.n, num_true_, units_, classes_, hidden,
                                              pass.inputs[1], weights, parts.offsets, parts.truth));
    sized(pass).classes_to_units->backward_data(lane, hidden, weights, nullptr, parts.logits);
    SampledProblem problem = this->problem(pass);
    problem.sampled = classes_;
    problem.remove_hits = true;  // the targets are in the other group
    sampling.loss(lane, problem, biases(pass), parts.truth, parts.logits, pass.outputs[0]);
  }

  Method method_;
  std::int64_t classes_, sampled_, units_ = 0, num_true_ = 1;
  bool remove_hits_, subtract_log_q_, bias_;
  std::shared_ptr<const Initializer> weights_initializer_, biases_initializer_;
  std::vector<double> probabilities_;
  DeviceDistribution distribution_;
  VariableId weights_id_ = VariableId::none, biases_id_ = VariableId::none;
  std::vector<Sized> sized_;
};

template <Method kMethod>
std::unique_ptr<Layer> make(std::string name, const Params& p) {
  return std::make_unique<SampledLossLayer>(std::move(name), p.as<Options>(), p, kMethod);
}

}  // namespace

extern const LayerEntry kNceLayer = {"nce", "noise-contrastive loss over sampled classes", kNceTable,
                                     make<Method::nce>};
extern const LayerEntry kSampledSoftmaxLayer = {"sampled_softmax",
                                                "softmax cross-entropy over sampled classes",
                                                kSampledSoftmaxTable, make<Method::sampled_softmax>};
extern const LayerEntry kNegativeSamplingLayer = {"negative_sampling",
                                                  "logistic loss against classes drawn per sample",
                                                  kNegativeSamplingTable, make<Method::negative_sampling>};

}  // namespace lockstep

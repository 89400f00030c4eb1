// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Losses of single output numbers, with one label per number.
#include <cmath>

#include "model/losses/loss_options.h"

namespace lockstep {

namespace {

enum class Allowed { finite, between_zero_and_one, zero_or_one };

class ElementwiseLoss final : public Loss {
 public:
  struct Options {
    const char* kind;
    ElementLossOptions terms;
    Allowed labels = Allowed::finite;
    bool over_classes_sum = false;  ///< sum along the last axis instead of the mean
    std::vector<double> factors = {};
    std::optional<std::int32_t> ignored = {};
  };
  explicit ElementwiseLoss(Options options) : options_(std::move(options)) {
    options_.terms.ignores_nan = options_.ignored.has_value();
  }

  bool takes_labels() const override { return options_.terms.kind != ElementLoss::identity; }
  LabelForm form(const Shape& output, std::int64_t columns) const override {
    if (!takes_labels()) return LabelForm::none;
    LOCKSTEP_REQUIRE(columns == output.num_elements(), ErrorKind::config,
                     "{} of outputs {} takes {} label values per sample, but gets {} label columns",
                     options_.kind, output.to_string(), output.num_elements(), columns);
    return LabelForm::rows;
  }
  LabelRule rule(const Shape&, LabelForm) const override {
    switch (options_.labels) {
      case Allowed::between_zero_and_one:
        return LabelRule::between_zero_and_one(options_.ignored);
      case Allowed::zero_or_one:
        return LabelRule::zero_or_one(options_.ignored);
      case Allowed::finite:
        break;
    }
    return LabelRule::finite(options_.ignored);
  }
  std::optional<std::int32_t> ignored() const override { return options_.ignored; }
  bool has_classes() const override { return false; }
  bool takes_weights() const override { return takes_labels(); }
  PredictionKind predictions() const override {
    const ElementLoss kind = options_.terms.kind;
    return kind == ElementLoss::sigmoid || kind == ElementLoss::focal ? PredictionKind::labels
                                                                      : PredictionKind::values;
  }
  void prepare(Device& device, const Shape& output) override {
    options_.terms.channels = output.last();
    if (!options_.factors.empty())
      options_.terms.factors = on_device_.make(options_.factors, output.last(), device, options_.kind);
  }

  std::int64_t terms(const Shape& output) const override {
    return options_.over_classes_sum ? positions(output) : output.num_elements();
  }
  std::int64_t positions(const Shape& output) const override { return output.num_elements() / output.last(); }
  bool counts_labels() const override { return options_.ignored.has_value(); }
  LossCounts count(std::int64_t n, const Shape& output, const Labels& labels) const override {
    if (!counts_labels() || labels.rows == nullptr) return Loss::count(n, output, labels);
    const std::int64_t width = options_.over_classes_sum ? output.last() : 1;
    LossCounts counts;
    for (std::int64_t i = 0; i < n * terms(output); ++i)
      counts.divisor += std::all_of(labels.rows + i * width, labels.rows + (i + 1) * width,
                                    [](float label) { return std::isnan(label); })
                            ? 0
                            : 1;
    return counts;
  }

  void run(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
           ConstData outputs, const Labels& labels, float gradient_scale, Data d_outputs,
           LossSums* sums) const override {
    ElementLossOptions options = options_.terms;
    options.samples = {labels.weights, output.num_elements()};
    kernels.loss_terms.element(lane, options, n * output.num_elements(), outputs, labels.rows, gradient_scale,
                               d_outputs, &sums->loss);
  }

 private:
  Options options_;
  ChannelValues on_device_;
};

std::unique_ptr<Loss> make(const char* kind, ElementLoss term, std::optional<std::int32_t> ignored,
                           double parameter = 0, Allowed labels = Allowed::finite) {
  return std::make_unique<ElementwiseLoss>(ElementwiseLoss::Options{
      .kind = kind, .terms = {.kind = term, .parameter = parameter}, .labels = labels, .ignored = ignored});
}

struct PlainOptions {
  std::optional<std::int32_t> ignored;
};
constexpr ParamSpec kPlainTable[] = {ignore_index_option<&PlainOptions::ignored>()};
std::optional<std::int32_t> ignored(const Params& params) { return params.as<PlainOptions>().ignored; }

struct HuberOptions {
  double delta = 0;
  std::optional<std::int32_t> ignored;
};
constexpr ParamSpec kHuberTable[] = {
    option<&HuberOptions::delta>("delta", "1", above(0).up_to(1e30),
                                 "Error at which the square becomes linear."),
    ignore_index_option<&HuberOptions::ignored>(),
};

struct SigmoidOptions {
  std::vector<double> pos_weight;
  bool sums_classes = false;
  std::optional<std::int32_t> ignored;
};
constexpr ParamSpec kSigmoidTable[] = {
    option_as<reals_or_none, &SigmoidOptions::pos_weight>(
        ParamType::reals, "pos_weight", "null", between(0, 1e30),
        "Factor of the loss of labels that are 1: one for all classes, or one for each."),
    option_as<is_second_choice, &SigmoidOptions::sums_classes>(
        ParamType::string, "classes", "mean", one_of("mean|sum"),
        "How the losses of a position's classes are combined. mean: the mean over all numbers of the "
        "output."),
    ignore_index_option<&SigmoidOptions::ignored>(),
};
constexpr ParamSpec kFocalTable[] = {
    option_as<is_second_choice, &FocalOptions::softmax>(
        ParamType::string, "activation", "sigmoid", one_of("sigmoid|softmax"),
        "sigmoid: independent classes, labels are 0 or 1. softmax: exclusive classes, labels are class "
        "indices."),
    option<&FocalOptions::gamma>("gamma", "2", between(0, 1000),
                                 "How strongly well-classified samples are down-weighted; 0: not at all."),
    option_as<reals_or_none, &FocalOptions::alpha>(
        ParamType::reals, "alpha", "null", between(0, 1e30),
        "sigmoid: factor of the labels that are 1, those that are 0 have 1 - alpha. softmax: a factor per "
        "class, or one for all. null: all 1."),
    option_as<is_second_choice, &FocalOptions::sums_classes>(
        ParamType::string, "classes", "mean", one_of("mean|sum"),
        "As in sigmoid_cross_entropy; with sigmoid only."),
    ignore_index_option<&FocalOptions::ignored>(),
};

std::unique_ptr<Loss> make_focal(const Params& params) {
  const auto options = params.as<FocalOptions>();
  if (options.softmax) return make_softmax_focal(options);
  const std::vector<double>& alpha = options.alpha;
  if (alpha.size() > 1 || (alpha.size() == 1 && alpha[0] > 1))
    throw params.error(option_name<&FocalOptions::alpha>(params), "with sigmoid is one number from 0 to 1",
                       "Labels that are 0 have 1 - alpha.");
  return std::make_unique<ElementwiseLoss>(
      ElementwiseLoss::Options{.kind = "focal",
                               .terms = {.kind = ElementLoss::focal,
                                         .parameter = options.gamma,
                                         .alpha = alpha.empty() ? -1.0 : alpha[0]},
                               .labels = Allowed::between_zero_and_one,
                               .over_classes_sum = options.sums_classes,
                               .ignored = options.ignored});
}

}  // namespace

extern const LossEntry kSigmoidCrossEntropyEntry = {
    "sigmoid_cross_entropy", "sigmoid with cross-entropy per class; labels from 0 to 1, one per output",
    kSigmoidTable, [](const Params& params) -> std::unique_ptr<Loss> {
      const auto options = params.as<SigmoidOptions>();
      return std::make_unique<ElementwiseLoss>(
          ElementwiseLoss::Options{.kind = "sigmoid_cross_entropy",
                                   .terms = {.kind = ElementLoss::sigmoid},
                                   .labels = Allowed::between_zero_and_one,
                                   .over_classes_sum = options.sums_classes,
                                   .factors = options.pos_weight,
                                   .ignored = options.ignored});
    }};
extern const LossEntry kMeanSquaredErrorEntry = {
    "mean_squared_error", "the mean of (output - label)^2", kPlainTable,
    [](const Params& params) { return make("mean_squared_error", ElementLoss::squared, ignored(params)); }};
extern const LossEntry kMeanAbsoluteErrorEntry = {
    "mean_absolute_error", "the mean of |output - label|", kPlainTable,
    [](const Params& params) { return make("mean_absolute_error", ElementLoss::absolute, ignored(params)); }};
extern const LossEntry kHuberEntry = {
    "huber", "half the square of small errors, linear beyond delta", kHuberTable, [](const Params& params) {
      const auto options = params.as<HuberOptions>();
      return make("huber", ElementLoss::huber, options.ignored, options.delta);
    }};
extern const LossEntry kLogCoshEntry = {
    "log_cosh", "the mean of log cosh(output - label)", kPlainTable,
    [](const Params& params) { return make("log_cosh", ElementLoss::log_cosh, ignored(params)); }};
extern const LossEntry kHingeEntry = {
    "hinge", "the mean of max(0, 1 - y output), y = -1 for label 0 and 1 for label 1", kPlainTable,
    [](const Params& params) {
      return make("hinge", ElementLoss::hinge, ignored(params), 0, Allowed::zero_or_one);
    }};
extern const LossEntry kFocalEntry = {"focal", "cross-entropy that down-weights well-classified samples",
                                      kFocalTable, make_focal};
extern const LossEntry kMeanEntry = {"mean",
                                     "the mean of the output, without labels; for layers that compute a loss",
                                     {},
                                     [](const Params&) -> std::unique_ptr<Loss> {
                                       return std::make_unique<ElementwiseLoss>(ElementwiseLoss::Options{
                                           .kind = "mean", .terms = {.kind = ElementLoss::identity}});
                                     }};

}  // namespace lockstep

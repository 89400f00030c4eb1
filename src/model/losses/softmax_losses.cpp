// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Losses over a softmax of the last axis. Every position of the other axes is a term.
#include <cmath>

#include "core/scalar.h"
#include "model/class_balance.h"
#include "model/losses/loss_options.h"

namespace lockstep {

namespace {

class SoftmaxLoss : public Loss, public ClassBalance {
 public:
  /// `weights`: one per class; empty: all 1. `balanced`: they come from balance() instead.
  SoftmaxLoss(const char* kind, const RowLossOptions& options, std::vector<double> weights,
              std::optional<std::int32_t> ignored, bool balanced = false)
      : kind_(kind),
        options_(options),
        weights_(std::move(weights)),
        ignored_(ignored),
        balanced_(balanced) {}
  bool balances_classes() const override { return balanced_; }
  void balance(Device& device, std::vector<std::int64_t> counts) override {
    weights_ = balanced_weights(counts);
    options_.weights = on_device_.make(weights_, std::ssize(counts), device, kind_);
    counts_ = std::move(counts);
  }
  std::span<const std::int64_t> class_counts() const override { return counts_; }

  LabelForm form(const Shape& output, std::int64_t columns) const override {
    const std::int64_t P = positions(output), C = output.last();
    LOCKSTEP_REQUIRE(columns == P || columns == P * C, ErrorKind::config,
                     "{} over outputs {} takes {} class {} or {} label values per sample, but gets {} label "
                     "columns",
                     kind_, output.to_string(), P, P == 1 ? "index" : "indices", P * C, columns);
    LOCKSTEP_REQUIRE(C > 1, ErrorKind::config,
                     "{}: a softmax of one class is always 1: give the last layer a unit for each class, or "
                     "take sigmoid_cross_entropy",
                     kind_);
    if (columns == P) return LabelForm::indices;
    LOCKSTEP_REQUIRE(!ignored_ && !options_.focal, ErrorKind::config,
                     "{}: {} class indices as labels, not rows of label values", kind_,
                     options_.focal ? "focal takes" : "ignore_index needs");
    return LabelForm::rows;
  }
  LabelRule rule(const Shape& output, LabelForm form) const override {
    if (form == LabelForm::indices) return LabelRule::classes(output.last(), ignored_);
    return LabelRule::shares(output.last());
  }
  std::optional<std::int32_t> ignored() const override { return ignored_; }
  bool has_classes() const override { return !options_.divergence; }
  bool takes_weights() const override { return true; }
  void prepare(Device& device, const Shape& output) override {
    if (weights_.empty()) return;
    options_.weights = on_device_.make(weights_, output.last(), device, kind_);
  }

  std::int64_t terms(const Shape& output) const override { return positions(output); }
  std::int64_t positions(const Shape& output) const override { return output.num_elements() / output.last(); }
  bool counts_labels() const override { return ignored_.has_value() || has_zero_weight(); }
  LossCounts count(std::int64_t n, const Shape& output, const Labels& labels) const override {
    const std::int64_t rows = n * positions(output);
    if (!counts_labels() || (labels.indices == nullptr && labels.rows == nullptr))
      return Loss::count(n, output, labels);
    LossCounts counts;
    for (std::int64_t i = 0; i < rows; ++i) {
      if (labels.indices != nullptr && labels.indices[i] < 0) continue;
      counts.positions += 1;
      counts.divisor += !has_zero_weight() || weight(labels, i, output.last()) != 0 ? 1 : 0;
    }
    return counts;
  }

  bool takes_16_bits() const override { return is_plain(); }
  void run(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
           ConstData outputs, const Labels& labels, float gradient_scale, Data d_outputs,
           LossSums* sums) const override {
    if (balanced_ && counts_.empty())
      throw Error(ErrorKind::config,
                  fmt::format("{}: class_weights: balanced, but nobody has counted the classes", kind_), "",
                  "Count the labels of the training set, and call ClassBalance::balance(); a run does so.");
    const std::int64_t rows = n * positions(output), classes = output.last();
    RowLossOptions options = options_;
    options.samples = {labels.weights, positions(output)};
    if (!is_plain() || labels.weights != nullptr)
      kernels.loss_terms.row(lane, options, rows, classes, outputs, labels.indices, labels.rows,
                             gradient_scale, d_outputs, &sums->loss, &sums->correct);
    else if (labels.indices != nullptr)
      kernels.loss.softmax_cross_entropy(lane, rows, classes, outputs, labels.indices, gradient_scale,
                                         d_outputs, &sums->loss, &sums->correct);
    else
      kernels.loss.softmax_cross_entropy_dense(lane, rows, classes, outputs, labels.rows, gradient_scale,
                                               d_outputs, &sums->loss, &sums->correct);
  }
  void predict(const KernelTable& kernels, Device&, const Lane& lane, std::int64_t n, const Shape& output,
               const float* outputs, float* predictions) const override {
    kernels.loss.softmax(lane, n * positions(output), output.last(), outputs, predictions);
  }
  PredictionKind predictions() const override { return PredictionKind::classes; }

 private:
  /// Cross-entropy without factors and smoothing: kernels of its own compute it.
  bool is_plain() const {
    return options_.smoothing == 0 && !options_.focal && !options_.divergence && weights_.empty() &&
           !balanced_;
  }
  /// A class of weight 0 leaves the mean. The alpha of a focal loss is a factor only: it keeps the divisor.
  bool has_zero_weight() const {
    return !options_.focal && std::ranges::find(weights_, 0.0) != weights_.end();
  }
  double weight(const Labels& labels, std::int64_t row, std::int64_t classes) const {
    const auto of = [&](std::int64_t j) {
      return weights_.empty() ? 1.0 : weights_[weights_.size() == 1 ? 0 : static_cast<std::size_t>(j)];
    };
    if (labels.indices != nullptr) return of(labels.indices[row]);
    double sum = 0;
    for (std::int64_t j = 0; j < classes; ++j)
      sum += static_cast<double>(labels.rows[row * classes + j]) * of(j);
    return sum;
  }

  const char* kind_;
  RowLossOptions options_;
  std::vector<double> weights_;
  std::optional<std::int32_t> ignored_;
  bool balanced_;
  std::vector<std::int64_t> counts_;  ///< of balance()
  ChannelValues on_device_;
};

/// One per class, or one for all; or balanced.
struct ClassWeights {
  static constexpr ParamType kParamType = ParamType::node;
  bool balanced = false;
  std::vector<double> values = {};
};
constexpr double kLargestWeight = 1e30;

void set_member(ClassWeights& member, const Params& params, const ParamSpec& option) {
  const Node& node = params.node(option.name);
  if (is_null(node)) return;
  if (node.kind == Node::Kind::scalar && node.text == "balanced") {
    member.balanced = true;
    return;
  }
  const std::span<const Node> items =
      node.kind == Node::Kind::list ? std::span<const Node>(node.items) : std::span<const Node>(&node, 1);
  for (const Node& item : items) {
    const auto value = item.kind == Node::Kind::scalar ? parse_real(item.text) : std::nullopt;
    if (!value || !(*value >= 0 && *value <= kLargestWeight))
      throw params.error(option.name, "is neither balanced nor numbers from 0 to 1e+30",
                         "Give a factor for each class, class_weights: [1, 2], or class_weights: balanced.");
    member.values.push_back(*value);
  }
  if (member.values.empty())
    throw params.error(option.name, "is empty", "Leave it out, or give a factor for each class.");
}

struct CrossEntropyOptions {
  double label_smoothing = 0;
  ClassWeights class_weights;
  std::optional<std::int32_t> ignored;
};
using Options = CrossEntropyOptions;
constexpr ParamSpec kCrossEntropyTable[] = {
    option<&Options::label_smoothing>("label_smoothing", "0", at_least(0).below(1),
                                      "Fraction of each label that is spread evenly over all classes."),
    option<&Options::class_weights>(
        "class_weights", "null", in_words("[0, 1e30] per class, balanced, or null"),
        "A factor per class for the loss of its samples. The mean is over samples whose factor is not 0. "
        "balanced: labels / (classes x labels of the class) in the training set."),
    ignore_index_option<&Options::ignored>(),
};

}  // namespace

extern const LossEntry kSoftmaxCrossEntropyEntry = {
    "softmax_cross_entropy",
    "softmax with cross-entropy over the classes of the last axis; labels are class indices or dense rows",
    kCrossEntropyTable, [](const Params& params) -> std::unique_ptr<Loss> {
      const auto options = params.as<CrossEntropyOptions>();
      return std::make_unique<SoftmaxLoss>(
          "softmax_cross_entropy", RowLossOptions{.smoothing = options.label_smoothing},
          options.class_weights.values, options.ignored, options.class_weights.balanced);
    }};

extern const LossEntry kKlDivergenceEntry = {
    "kl_divergence",
    "Kullback-Leibler divergence of softmax(outputs) from the label distribution; labels are dense rows",
    {},
    [](const Params&) -> std::unique_ptr<Loss> {
      return std::make_unique<SoftmaxLoss>("kl_divergence", RowLossOptions{.divergence = true},
                                           std::vector<double>{}, std::nullopt);
    }};

std::unique_ptr<Loss> make_softmax_focal(const FocalOptions& options) {
  return std::make_unique<SoftmaxLoss>("focal", RowLossOptions{.focal = true, .gamma = options.gamma},
                                       options.alpha, options.ignored);
}

}  // namespace lockstep

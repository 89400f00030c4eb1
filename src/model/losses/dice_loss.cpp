// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Soft dice: the overlap of prediction and label, per class over the positions of a sample.
#include "model/losses/loss_options.h"

namespace lockstep {

namespace {

struct Options {
  bool sigmoid = false;
  double smooth = 0;
  std::optional<std::int32_t> ignored;
};
constexpr ParamSpec kTable[] = {
    option_as<is_second_choice, &Options::sigmoid>(
        ParamType::string, "activation", "softmax", one_of("softmax|sigmoid"),
        "How outputs become probabilities: softmax over exclusive classes, or sigmoid per class."),
    option<&Options::smooth>("smooth", "1", between(0, 1e30),
                             "Added to numerator and denominator; with 0, an absent class counts 0."),
    ignore_index_option<&Options::ignored>(),
};

class Dice final : public Loss {
 public:
  explicit Dice(const Options& o) : options_{!o.sigmoid, o.smooth}, ignored_(o.ignored) {}

  LabelForm form(const Shape& output, std::int64_t columns) const override {
    const std::int64_t P = per_sample(output), C = output.last();
    const bool indices = columns == P && C > 1;
    LOCKSTEP_REQUIRE(indices || columns == P * C, ErrorKind::config,
                     "dice over outputs {} takes {} class indices or {} label values per sample, but gets {} "
                     "label columns",
                     output.to_string(), P, P * C, columns);
    LOCKSTEP_REQUIRE(indices || !ignored_, ErrorKind::config,
                     "dice: ignore_index needs class indices as labels, not label values");
    LOCKSTEP_REQUIRE(C <= kMostDiceClasses, ErrorKind::config, "dice takes at most {} classes, but gets {}",
                     kMostDiceClasses, C);
    LOCKSTEP_REQUIRE(C > 1 || !options_.softmax, ErrorKind::config,
                     "dice: a softmax of one class is always 1; give activation: sigmoid");
    return indices ? LabelForm::indices : LabelForm::rows;
  }
  LabelRule rule(const Shape& output, LabelForm form) const override {
    return form == LabelForm::indices ? LabelRule::classes(output.last(), ignored_)
                                      : LabelRule::between_zero_and_one();
  }
  std::optional<std::int32_t> ignored() const override { return ignored_; }
  bool has_classes() const override { return false; }
  bool takes_weights() const override { return true; }
  PredictionKind predictions() const override {
    return options_.softmax ? PredictionKind::classes : PredictionKind::labels;
  }
  void predict(const KernelTable& kernels, Device& device, const Lane& lane, std::int64_t n,
               const Shape& output, const float* outputs, float* predictions) const override {
    if (options_.softmax)
      kernels.loss.softmax(lane, n * per_sample(output), output.last(), outputs, predictions);
    else
      Loss::predict(kernels, device, lane, n, output, outputs, predictions);
  }
  std::int64_t terms(const Shape&) const override { return 1; }
  std::int64_t positions(const Shape& output) const override { return per_sample(output); }
  bool counts_labels() const override { return ignored_.has_value(); }
  /// Samples with at least one position that is not ignored.
  LossCounts count(std::int64_t n, const Shape& output, const Labels& labels) const override {
    if (!counts_labels() || labels.indices == nullptr) return Loss::count(n, output, labels);
    const std::int64_t P = per_sample(output);
    LossCounts counts;
    for (std::int64_t i = 0; i < n; ++i)
      counts.divisor += std::any_of(labels.indices + i * P, labels.indices + (i + 1) * P,
                                    [](std::int32_t label) { return label >= 0; })
                            ? 1
                            : 0;
    return counts;
  }
  void run(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
           ConstData outputs, const Labels& labels, float gradient_scale, Data d_outputs,
           LossSums* sums) const override {
    DiceOptions options = options_;
    options.samples.values = labels.weights;
    kernels.loss_terms.dice(lane, options, n, per_sample(output), output.last(), outputs, labels.indices,
                            labels.rows, gradient_scale, d_outputs, &sums->loss);
  }

 private:
  static std::int64_t per_sample(const Shape& output) { return output.num_elements() / output.last(); }

  DiceOptions options_;
  std::optional<std::int32_t> ignored_;
};

}  // namespace

extern const LossEntry kDiceEntry = {
    "dice", "1 - soft dice coefficient, per sample and class; labels are class indices or 0 and 1 per output",
    kTable, [](const Params& params) -> std::unique_ptr<Loss> {
      return std::make_unique<Dice>(params.as<Options>());
    }};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Losses over a softmax of the last axis.
#include "model/losses/entries.h"

namespace lockstep {

namespace {

/// -log softmax(x)[label], or -sum_j t_j log softmax(x)_j with dense labels t; each position by itself.
class SoftmaxCrossEntropy final : public Loss {
 public:
  LabelForm form(const Shape& output, std::int64_t columns) const override {
    const std::int64_t P = positions(output), C = output.last();
    LOCKSTEP_REQUIRE(columns == P || columns == P * C, ErrorKind::config,
                     "softmax_cross_entropy over outputs {} takes {} class {} or {} label values per sample, "
                     "but gets {} label columns",
                     output.to_string(), P, P == 1 ? "index" : "indices", P * C, columns);
    return columns == P ? LabelForm::indices : LabelForm::rows;
  }
  LabelRule rule(const Shape& output, LabelForm form) const override {
    return form == LabelForm::indices ? LabelRule::classes(output.last()) : LabelRule::finite();
  }
  bool has_classes() const override { return true; }
  std::int64_t terms(const Shape& output) const override { return positions(output); }
  std::int64_t positions(const Shape& output) const override { return output.num_elements() / output.last(); }
  void run(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
           const float* outputs, const Labels& labels, float gradient_scale, float* d_outputs,
           LossSums* sums) const override {
    const std::int64_t rows = n * positions(output);
    if (labels.indices != nullptr)
      kernels.loss.softmax_cross_entropy(lane, rows, output.last(), outputs, labels.indices, gradient_scale,
                                         d_outputs, &sums->loss, &sums->correct);
    else
      kernels.loss.softmax_cross_entropy_dense(lane, rows, output.last(), outputs, labels.rows,
                                               gradient_scale, d_outputs, &sums->loss, &sums->correct);
  }
  void predict(const KernelTable& kernels, Device&, const Lane& lane, std::int64_t n, const Shape& output,
               const float* outputs, float* predictions) const override {
    kernels.loss.softmax(lane, n * positions(output), output.last(), outputs, predictions);
  }
};

}  // namespace

const LossEntry kSoftmaxCrossEntropyEntry = {
    "softmax_cross_entropy",
    "softmax with cross-entropy over classes; labels are indices or dense rows",
    {},
    [](const Params&) -> std::unique_ptr<Loss> { return std::make_unique<SoftmaxCrossEntropy>(); }};

}  // namespace lockstep

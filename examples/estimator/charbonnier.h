// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// charbonnier, a loss that is not part of Lockstep: sqrt((y - label)^2 + 1) - 1, the mean over the outputs
// (Charbonnier et al. 1994, "Two deterministic half-quadratic regularization algorithms for computed
// imaging"). It grows like a square near 0 and like the distance far away.
#pragma once

#include <lockstep/eigen.h>
#include <lockstep/loss.h>

namespace example {

using namespace lockstep;

class Charbonnier final : public Loss {
 public:
  LabelForm form(const Shape& output, std::int64_t columns) const override {
    LOCKSTEP_REQUIRE(columns == output.num_elements(), ErrorKind::config,
                     "charbonnier takes one label per output, {}, but gets {} label columns",
                     output.num_elements(), columns);
    return LabelForm::rows;
  }
  LabelRule rule(const Shape&, LabelForm) const override { return LabelRule::finite(); }
  bool has_classes() const override { return false; }
  std::int64_t terms(const Shape& output) const override { return output.num_elements(); }
  std::int64_t positions(const Shape& output) const override { return output.num_elements(); }

  // One microshard. The sum is in double.
  void run(const KernelTable&, const Lane&, std::int64_t n, const Shape& output, ConstData outputs,
           const Labels& labels, float gradient_scale, Data d_outputs, LossSums* sums) const override {
    const std::int64_t width = output.num_elements();
    const auto distance = array(outputs, n, width) - array(labels.rows, n, width);
    const auto root = (distance.square() + 1).sqrt();
    sums->loss = (root - 1).cast<double>().sum();
    if (d_outputs) array(d_outputs, n, width) = gradient_scale * distance / root;
  }
};

inline const LossEntry kCharbonnier = {
    "charbonnier", "sqrt((y - label)^2 + 1) - 1", {}, [](const Params&) -> std::unique_ptr<Loss> {
      return std::make_unique<Charbonnier>();
    }};

}  // namespace example

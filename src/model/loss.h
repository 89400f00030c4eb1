// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The interface of a loss. A loss computes the sums and the gradient of one microshard. The sums are merged
// along the reduction tree, and the gradient is scaled by 1 / (positions of the whole global batch), so
// microshards of different sizes, and empty ones, are exact. A position whose label is ignored does not
// count.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "config/params.h"
#include "config/table.h"
#include "core/shape.h"
#include "kernels/kernel_table.h"
#include "model/label_rule.h"
#include "model/prediction_kind.h"

namespace lockstep {

/// Labels of one microshard, n samples x `columns`: either int32 (usually class indices) or float32. Without
/// labels both pointers are null.
struct Labels {
  const std::int32_t* indices = nullptr;
  const float* rows = nullptr;
  std::int64_t columns = 1;
  const float* weights = nullptr;  ///< a factor of each sample's loss; null: all 1
};

/// The sums of one microshard.
struct LossSums {
  double loss = 0;           ///< sum of the losses, not yet divided
  std::int64_t correct = 0;  ///< positions whose largest output is the label's class
};

/// The divisors of LossSums. They depend on the labels alone.
struct LossCounts {
  double divisor = 0;    ///< of `loss`
  double positions = 0;  ///< of `correct`: the positions whose label is not ignored
};

/// The form in which a loss takes labels.
enum class LabelForm { none, indices, rows };

class Loss {
 public:
  virtual ~Loss() = default;

  /// The form in which the loss takes `columns` labels per sample, for outputs of this shape (per sample).
  /// Throws Error(config) that names `columns` if it cannot take them.
  virtual LabelForm form(const Shape& output, std::int64_t columns) const = 0;
  /// False for a loss of the outputs alone; form() is then none for any data.
  virtual bool takes_labels() const { return true; }
  /// The labels that are valid in this form.
  virtual LabelRule rule(const Shape& output, LabelForm form) const = 0;
  /// Labels with this value are ignored. They reach run() and count() as kIgnoredIndex or NaN.
  virtual std::optional<std::int32_t> ignored() const { return {}; }
  static constexpr std::int32_t kIgnoredIndex = -1;
  /// Whether LossSums::correct is filled, so that there is an accuracy.
  virtual bool has_classes() const = 0;
  /// Makes the loss's memory on the device. Called once, before run(). Throws Error(config) for options that
  /// do not fit the output.
  virtual void prepare(Device&, const Shape& /*output*/) {}

  /// The number of terms per sample; the loss is the mean over terms.
  virtual std::int64_t terms(const Shape& output) const = 0;
  /// The number of positions per sample; `correct` counts positions.
  virtual std::int64_t positions(const Shape& output) const = 0;
  /// Whether count() depends on the labels and not on n alone.
  virtual bool counts_labels() const { return false; }
  /// Counts `labels`, in host memory and in the form of form(). Samples without labels count.
  virtual LossCounts count(std::int64_t n, const Shape& output, const Labels& labels) const;

  /// run() takes Labels::weights: each term of sample i, and its gradient, is multiplied by weights[i];
  /// samples of weight 0 are ignored. The caller counts accordingly.
  virtual bool takes_weights() const { return false; }

  /// Whether run() reads outputs in the model's 16-bit type and writes d_outputs in it, for samples without
  /// weights. Other losses get float32 copies.
  virtual bool takes_16_bits() const { return false; }
  /// Computes the sums of one microshard, and overwrites `d_outputs` (may be null) with the gradient of
  /// gradient_scale * sum of losses. Both have one type: float32, or any if takes_16_bits(). `labels` are on
  /// the device. `sums` is pinned memory of the device; it is valid once the lane's stream has reached this
  /// call.
  virtual void run(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
                   ConstData outputs, const Labels& labels, float gradient_scale, Data d_outputs,
                   LossSums* sums) const = 0;
  /// Computes predictions from outputs (softmax: probabilities), n rows of num_elements. Not in place.
  virtual void predict(const KernelTable& kernels, Device& device, const Lane& lane, std::int64_t n,
                       const Shape& output, const float* outputs, float* predictions) const;
  /// What metrics read from predict(). classes: probabilities of exclusive classes; labels: a sigmoid per
  /// output.
  virtual PredictionKind predictions() const { return PredictionKind::values; }
};

struct LossEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::unique_ptr<Loss> (*make)(const Params&);
};
/// Lockstep's own losses, then those that add() added.
Table<LossEntry>& loss_table();
/// Makes a loss from its name, or from a map of its name to options. Throws Error(config).
std::unique_ptr<Loss> make_loss(const Node& node);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What training makes small, and what evaluation counts. A loss works on one microshard's outputs; its sums
// go along the tree, and its gradient is scaled by 1 / (positions of the whole global batch), so unequal and
// empty parts are exact. A position whose label is ignored counts nowhere.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/label_rule.h"
#include "core/params.h"
#include "core/shape.h"
#include "kernels/kernel_table.h"
#include "model/prediction_kind.h"

namespace lockstep {

/// Labels of one microshard, n samples x `columns`: int32 (class indices as a rule), or float32. One of the
/// two, or none.
struct Labels {
  const std::int32_t* indices = nullptr;
  const float* rows = nullptr;
  std::int64_t columns = 1;
};

/// A microshard's part of what a loss adds up.
struct LossSums {
  double loss = 0;           ///< sum, not yet divided
  std::int64_t correct = 0;  ///< positions whose largest output is the label's class
};

/// What sums are divided by. Known from the labels alone.
struct LossCounts {
  double divisor = 0;    ///< of the loss
  double positions = 0;  ///< of `correct`: those whose label is not ignored
};

/// The form in which a loss takes labels.
enum class LabelForm { none, indices, rows };

class Loss {
 public:
  virtual ~Loss() = default;

  /// How it takes `columns` labels per sample for outputs of this shape (per sample). Throws Error(config) if
  /// it cannot; then `columns` says what it got.
  virtual LabelForm form(const Shape& output, std::int64_t columns) const = 0;
  /// False for a loss of the outputs alone: form() is none then, whatever the data has.
  virtual bool takes_labels() const { return true; }
  /// Which labels it can take in this form.
  virtual LabelRule rule(const Shape& output, LabelForm form) const = 0;
  /// Labels equal to this number count nowhere. They reach run() and count() as kIgnoredIndex or NaN.
  virtual std::optional<std::int32_t> ignored() const { return {}; }
  static constexpr std::int32_t kIgnoredIndex = -1;
  /// LossSums::correct has a meaning: accuracy can be told.
  virtual bool has_classes() const = 0;
  /// Memory of its own on the device; once, before run(). Throws Error(config) for options that do not fit
  /// the output.
  virtual void prepare(Device&, const Shape& /*output*/) {}

  /// Terms of a sample's loss that the mean is over.
  virtual std::int64_t terms(const Shape& output) const = 0;
  /// Positions of a sample that `correct` counts.
  virtual std::int64_t positions(const Shape& output) const = 0;
  /// count() depends on the labels, not on n alone.
  virtual bool counts_labels() const { return false; }
  /// `labels` in host memory, in the form of form(). Samples without labels count.
  virtual LossCounts count(std::int64_t n, const Shape& output, const Labels& labels) const;

  /// `d_outputs` (may be null) is overwritten with the gradient of gradient_scale * sum of losses. `labels`
  /// on the device. `sums` is pinned memory of the device: filled when the lane's stream has come so far.
  virtual void run(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
                   const float* outputs, const Labels& labels, float gradient_scale, float* d_outputs,
                   LossSums* sums) const = 0;
  /// What `predict` writes: n rows of num_elements (softmax: probabilities). Not in place.
  virtual void predict(const KernelTable& kernels, Device& device, const Lane& lane, std::int64_t n,
                       const Shape& output, const float* outputs, float* predictions) const;
  /// What metrics take the outputs for. classes: predict() gives their probabilities; labels: those are the
  /// sigmoids of the outputs.
  virtual PredictionKind predictions() const { return PredictionKind::values; }
};

struct LossEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::unique_ptr<Loss> (*make)(const Params&);
};
/// Lockstep's own losses and those that register_loss() added.
std::span<const LossEntry> loss_table();
/// Adds a user's loss, before a model is made; its texts and table must live as long as the program. Throws
/// Error(config) if the name is taken.
void register_loss(const LossEntry& entry);
std::unique_ptr<Loss> make_loss(const Node& node);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What training makes small, and what evaluation counts. A loss works on one microshard's outputs; its sums
// go along the tree, and its gradient is scaled by 1 / (samples of the whole global batch), so unequal and
// empty parts are exact.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/params.h"
#include "core/shape.h"
#include "kernels/kernel_table.h"

namespace lockstep {

/// Labels of one microshard: class indices (n) or dense rows (n x classes).
struct Labels {
  const std::int32_t* indices = nullptr;
  const float* rows = nullptr;
};

/// A microshard's part of the step's numbers.
struct LossSums {
  double loss = 0;           ///< sum over samples
  std::int64_t correct = 0;  ///< samples whose largest output is the label's class
};

class Loss {
 public:
  virtual ~Loss() = default;
  /// Throws Error(config) if outputs of this shape (per sample) do not fit labels with `label_columns`
  /// columns, which are class indices or dense rows.
  virtual void check(const Shape& output, bool dense_labels, std::int64_t label_columns) const = 0;
  /// Number of classes that index labels may name.
  virtual std::int64_t num_classes(const Shape& output) const = 0;
  /// `d_outputs` (may be null) is overwritten with the gradient of gradient_scale * sum of losses. `sums` is
  /// pinned memory of the device: filled when the lane's stream has come so far.
  virtual void run(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
                   const float* outputs, const Labels& labels, float gradient_scale, float* d_outputs,
                   LossSums* sums) const = 0;
  /// What `predict` writes: n rows of num_elements (softmax: probabilities). May alias.
  virtual void predict(const KernelTable& kernels, const Lane& lane, std::int64_t n, const Shape& output,
                       const float* outputs, float* predictions) const = 0;
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

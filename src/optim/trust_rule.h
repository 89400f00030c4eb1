// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The base class of LARS and LAMB, whose rate of a variable depends on norms of the whole variable. measure()
// computes them before the updates of a step: squares are added in double, block by block as for clipping
// (kernels/clip.h), in an order that the shapes alone fix; ranks that hold parts exchange the sums of their
// blocks. The bits are the same on any number of ranks and threads, and on a GPU.
#pragma once

#include "config/option.h"
#include "core/range.h"
#include "kernels/clip.h"
#include "kernels/update.h"
#include "optim/block_parts.h"
#include "optim/element_rule.h"

namespace lockstep {

/// Options of both rules, next to RuleOptions.
struct TrustOptions {
  bool adapt_vectors = false, decay_vectors = false;
};
template <auto... kPath>
constexpr ParamSpec adapt_vectors_option() {
  return option<kPath..., &TrustOptions::adapt_vectors>(
      "adapt_vectors", "false", {},
      "the rate also of variables with fewer than two dimensions (biases, scales and shifts of norms) "
      "depends "
      "on their norms; false: their rate is learning_rate");
}
template <auto... kPath>
constexpr ParamSpec decay_vectors_option() {
  return option<kPath..., &TrustOptions::decay_vectors>(
      "decay_vectors", "false", {}, "weight_decay also applies to variables with fewer than two dimensions");
}

class TrustRule : public UpdateRule {
 public:
  std::span<const std::string_view> slot_names() const final { return names_; }
  std::string formula() const final;
  bool updates_on_devices() const final { return true; }
  bool updates_parts() const final { return true; }
  bool measures() const final { return true; }
  /// Norms are of whole variables.
  bool takes_rows(std::string_view) const final { return false; }
  void measure(const UpdateContext& context, const float* gradients) final;
  void share_measures(const GradientParts& parts) final;
  void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
              const float* gradients, Range range) const final;

 protected:
  /// `slots`: names with static storage.
  TrustRule(RuleOptions&& options, const TrustOptions& trust, std::initializer_list<std::string_view> slots);

  /// Where the sums of squares of a variable and of its gradient or direction are; null: the rate is not
  /// adapted.
  struct Norms {
    const double *w2 = nullptr, *x2 = nullptr;
  };
  /// The numbers of a step, computed in double, for each class of variables (counts()).
  virtual void begin(std::int64_t step, double rate) = 0;
  /// The update of a variable. `decay`: its weight decay. `number`: of its class.
  virtual RuleStep move(Norms norms, double decay, std::size_t number) const = 0;
  /// A step before the norms that gives what is measured in its last slot.
  virtual RuleStep direction(double /*decay*/, std::size_t /*number*/) const { return {}; }
  /// False: gradients are measured, and there is no direction().
  virtual bool has_direction() const { return false; }
  /// The formula with its numbers; `decay` is the weight decay in words, or empty.
  virtual std::string rule_text(const std::string& decay) const = 0;

 private:
  struct Own {
    std::int64_t first, last;  ///< in the flat range
    bool adapts, decays;
  };
  void set_variables(Device& device, const VariableStore& variables, std::span<const VariableId> own) final;
  void prepare(std::int64_t step) final;
  void measure_blocks(const UpdateContext& context, int thread, const float* gradients);
  void measure_on_device(const UpdateContext& context, const float* gradients);
  double decay_of(const Own& variable) const { return variable.decays ? decay_ : 0; }
  RuleStep direction_of(const Own& variable) const {
    return direction(decay_of(variable), counts().class_at(variable.first));
  }
  RuleSlots slots_from(std::int64_t first) const;

  std::vector<std::string_view> names_;
  const ScheduledNumber& factor_;
  TrustOptions options_;
  double decay_ = 0;  ///< weight decay of the step
  std::int64_t measured_ = -1;
  std::vector<Own> own_;  ///< ascending
  std::vector<ClipBlock> blocks_on_host_;
  BlockParts parts_;
  // On the device: the blocks of all variables, a ClipVariable each; per block the sums of w and of x; per
  // variable the sums of w and of x. Directions: 0 or as many numbers as the flat range (on a GPU) or as a
  // block per thread.
  Buffer blocks_, variables_, block_sums_[2], squares_[2], directions_, unused_factors_, unused_totals_;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Base of the rules that move a matrix by a direction computed from all of it (Muon, Shampoo), and all other
// variables by AdamW (kernels/rules/adam.h).
//
// A matrix is a variable with two or more extents: rows x units for a dense layer; for a convolution all
// extents but the last are the rows. In a step, measure() writes a direction per element from the gradient
// and the slots; MatrixWork computes matrices from these; update() does w = kept w - rate direction.
#pragma once

#include "config/option.h"
#include "core/name_pattern.h"
#include "core/range.h"
#include "kernels/update.h"
#include "optim/element_rule.h"
#include "optim/matrix_work.h"

namespace lockstep {

/// Options of all such rules, next to RuleOptions: how AdamW updates.
struct AdamwOptions {
  std::vector<NamePattern> adamw_for;
  double adamw_rate_factor = 1, epsilon = 0;
  float beta1 = 0, beta2 = 0;
};
/// For option_as(). Throws Error(usage).
std::vector<NamePattern> patterns_of(const Params& options, const ParamSpec& option);
template <auto... kPath>
constexpr ParamSpec adamw_for_option() {
  return option_as<patterns_of, kPath..., &AdamwOptions::adamw_for>(
      ParamType::strings, "adamw_for", "[*/embeddings]", {},
      "patterns of names of matrices that AdamW updates, such as those of the last layer");
}
template <auto... kPath>
constexpr ParamSpec adamw_rate_option() {
  return option<kPath..., &AdamwOptions::adamw_rate_factor>("adamw_rate_factor", "1", above(0).up_to(1e6),
                                                            "of the learning rate, where AdamW updates");
}
template <auto... kPath>
constexpr ParamSpec beta1_option(std::string_view help) {
  return option_as<share_below_one, kPath..., &AdamwOptions::beta1>(ParamType::real, "beta1", "0.9",
                                                                    at_least(0).below(1), help);
}
template <auto... kPath>
constexpr ParamSpec beta2_option(std::string_view help) {
  return option_as<share_below_one, kPath..., &AdamwOptions::beta2>(ParamType::real, "beta2", "0.95",
                                                                    at_least(0).below(1), help);
}
template <auto... kPath>
constexpr ParamSpec adamw_epsilon_option(std::string_view help) {
  return option<kPath..., &AdamwOptions::epsilon>("epsilon", "1e-8", above(0).up_to(1e6), help);
}

class MatrixRule : public UpdateRule, protected MatrixWork {
 public:
  std::span<const std::string_view> slot_names() const final {
    static constexpr std::string_view kNames[] = {"m", "v"};
    return kNames;
  }
  /// AdamW's where it updates the variable.
  std::string meaning_of_slots(const Variable& variable) const override {
    return is_matrix(variable) ? kind() : "adam";
  }
  std::string formula() const final;
  bool updates_on_devices() const final { return true; }
  bool takes_rows(std::string_view variable) const final { return is_for_adamw(std::string(variable)); }
  MatrixWork* matrix_work(const UpdateContext& context) final;
  bool measures() const final { return true; }
  bool counts_updates() const final { return true; }
  void measure(const UpdateContext& context, const float* gradients) override;
  void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
              const float* gradients, Range range) const final;
  void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                   const Variable& table, const SparseRows& gradient, Range rows) const final;

 protected:
  MatrixRule(RuleOptions&& options, const AdamwOptions& adamw);

  /// A matrix in the flat range of the variables.
  struct Piece {
    const Variable* variable;
    std::int64_t rows, units;
    std::int64_t place;  ///< in direction_values()
    double factor = 1;   ///< of the learning rate
    Range range() const { return {variable->offset, variable->offset + rows * units}; }
  };

  /// What happens to matrices, where lr is the rate.
  virtual std::string matrix_formula() const = 0;
  /// The direction of an element of variables of a class, counts().classes()[number]: what `w` becomes. The
  /// slots are m and v.
  virtual RuleStep direction_at(std::int64_t step, std::size_t number) = 0;
  /// Called once, when the matrices are known; may set their factors.
  virtual void plan(const UpdateContext& context, std::span<Piece> pieces) = 0;

  bool is_matrix(const Variable& variable) const {
    return variable.shape.rank() >= 2 && !is_for_adamw(variable.name);
  }
  const ScheduledNumber& decay() const { return decay_; }
  float beta1() const { return beta1_; }
  float beta2() const { return beta2_; }
  double epsilon() const { return epsilon_; }
  /// The directions of all matrices, on the device, each row-major from a multiple of 16 on.
  float* direction_values() const { return static_cast<float*>(directions_.data()); }
  std::size_t direction_bytes() const { return directions_.size_bytes(); }

 private:
  void set_variables(Device& device, const VariableStore& variables, std::span<const VariableId> own) final;
  void prepare(std::int64_t step) final;
  bool is_for_adamw(const std::string& name) const;
  template <typename OfMatrix, typename OfRest>
  void for_each_piece(Range range, const OfMatrix& of_matrix, const OfRest& of_rest) const;

  const ScheduledNumber& decay_;
  double adamw_factor_;
  float beta1_, beta2_;
  double epsilon_;
  std::vector<NamePattern> adamw_for_;

  std::vector<const Variable*> matrix_variables_;  ///< by range
  std::vector<Piece> pieces_;                      ///< of them
  Buffer directions_;
  std::vector<RuleStep> direction_now_, adamw_now_;  ///< of each class of variables
  float kept_ = 1;
  double rate_ = 0;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Muon: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon, in the form of torch.optim.Muon of
// PyTorch 2.9. Matrices move by their orthogonalized mean of gradients (optim/orthogonalizer.h), all other
// variables by AdamW (kernels/rules/adam.h).
//
// A matrix is a variable with two or more extents: rows x units for a dense layer; for a convolution all
// extents but the last are the rows. The factor of the rate, for rows r and units u, is 0.2 sqrt(max(r, u))
// (Liu et al. 2025, arXiv:2502.16982, equation 4: the size of AdamW's steps, so both rules may have one rate)
// or sqrt(max(1, u / r)) (Jordan et al.).
#include <algorithm>
#include <cmath>

#include "core/name_pattern.h"
#include "kernels/rules.h"
#include "optim/element_rule.h"
#include "optim/orthogonalizer.h"

namespace lockstep {

namespace {

class MuonRule final : public Optimizer, private MatrixWork {
 public:
  explicit MuonRule(const Params& p)
      : Optimizer(p, p.boolean("lazy")),
        momentum_(scheduled(p, "momentum", kShareRange)),
        decay_(scheduled(p, "weight_decay", kDecayRange)),
        nesterov_(p.boolean("nesterov")),
        iterations_(static_cast<int>(p.integer("iterations"))),
        matches_adamw_(p.string("scale") == "adamw"),
        adamw_factor_(p.real("adamw_rate_factor")),
        beta1_(share_below_one(p, "beta1")),
        beta2_(share_below_one(p, "beta2")),
        epsilon_(p.real("epsilon")) {
    for (const std::string& text : p.strings("adamw_for")) adamw_for_.emplace_back(text);
  }

  const char* kind() const override { return "muon"; }
  std::span<const std::string_view> slot_names() const override {
    static constexpr std::string_view kNames[] = {"m", "v"};
    return kNames;
  }
  bool updates_on_devices() const override { return true; }
  std::string formula() const override;
  bool takes_rows(std::string_view variable) const override { return is_for_adamw(std::string(variable)); }
  MatrixWork* matrix_work(const UpdateContext& context) override;
  bool measures() const override { return true; }
  void measure(const UpdateContext& context, const float* gradients) override;

  void update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
              const float* gradients, Range range) const override;
  void update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                   const Variable& table, const SparseRows& gradient, Range rows) const override;

 private:
  /// A matrix in the flat range of the variables.
  struct Piece {
    Range range;
    std::int64_t place = 0;  ///< in directions()
    double factor = 1;       ///< of the learning rate
  };

  void prepare(std::int64_t step) override;
  bool is_for_adamw(const std::string& name) const;
  template <typename OfMatrix, typename OfRest>
  void for_each_piece(Range range, const OfMatrix& of_matrix, const OfRest& of_rest) const;

  // MatrixWork
  const std::vector<Matrix>& matrices() const override { return matrices_; }
  float* directions() const override { return static_cast<float*>(directions_.data()); }
  void compute(const Lane& lane, std::size_t matrix) override {
    orthogonalizer_->compute(lane, matrix, directions());
  }
  std::size_t memory_bytes() const override {
    return directions_.size_bytes() + orthogonalizer_->memory_bytes();
  }

  const ScheduledNumber &momentum_, &decay_;
  bool nesterov_;
  int iterations_;
  bool matches_adamw_;
  double adamw_factor_;
  float beta1_, beta2_;
  double epsilon_;
  std::vector<NamePattern> adamw_for_;

  std::vector<Piece> pieces_;  ///< by range
  std::vector<Matrix> matrices_;
  Buffer directions_;
  std::unique_ptr<Orthogonalizer> orthogonalizer_;
  RuleStep direction_now_, adamw_now_;
  float kept_ = 1;
  double rate_ = 0;
};

std::string MuonRule::formula() const {
  return fmt::format(
      "matrices: m += (1 - {0}) (g - m); w *= 1 - lr {1}; w -= lr {2} orthogonalized({3}), r x u the shape; "
      "others: AdamW with betas {4} and {5}, epsilon {6}, weight decay {1}{7}",
      momentum_.text(), decay_.text(), matches_adamw_ ? "0.2 sqrt(max(r, u))" : "sqrt(max(1, u / r))",
      nesterov_ ? fmt::format("g + {} (m - g)", momentum_.text()) : "m", beta1_, beta2_, epsilon_,
      adamw_factor_ == 1 ? "" : fmt::format(", lr times {}", adamw_factor_));
}

bool MuonRule::is_for_adamw(const std::string& name) const {
  return std::ranges::any_of(adamw_for_, [&](const NamePattern& p) { return p.matches(name); });
}

MatrixWork* MuonRule::matrix_work(const UpdateContext& context) {
  std::vector<const Variable*> order;
  for (const Variable& variable : context.variables.variables())
    if (owns(variable) && variable.shape.rank() >= 2 && !is_for_adamw(variable.name))
      order.push_back(&variable);
  std::ranges::sort(order, {}, &Variable::offset);
  std::vector<Orthogonalizer::Matrix> shapes;
  std::int64_t place = 0;
  for (const Variable* variable : order) {
    const std::int64_t count = variable->shape.num_elements(),
                       units = variable->shape[variable->shape.rank() - 1], rows = count / units;
    const auto r = static_cast<double>(rows), u = static_cast<double>(units);
    pieces_.push_back({{variable->offset, variable->offset + count},
                       place,
                       matches_adamw_ ? 0.2 * std::sqrt(std::max(r, u)) : std::sqrt(std::max(1.0, u / r))});
    shapes.push_back({rows, units, place});
    place += VariableStore::padded(count);
  }
  orthogonalizer_ = std::make_unique<Orthogonalizer>(context, std::move(shapes), iterations_);
  directions_ = Buffer(context.device, static_cast<std::size_t>(place) * sizeof(float));
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    matrices_.push_back(
        {{pieces_[i].place, pieces_[i].place + pieces_[i].range.size()}, orthogonalizer_->cost(i)});
  return this;
}

void MuonRule::prepare(std::int64_t step) {
  rate_ = learning_rate(step);
  const auto momentum = static_cast<float>(momentum_.at(step));
  direction_now_ = nesterov_ ? rule_step(MuonDirection<true>{1.0F - momentum, momentum})
                             : rule_step(MuonDirection<false>{1.0F - momentum, momentum});
  kept_ = static_cast<float>(1 - rate_ * decay_.at(step));
  const double rate = rate_ * adamw_factor_, t = static_cast<double>(step + 1);
  const double correction = std::sqrt(1 - std::pow(static_cast<double>(beta2_), t));
  adamw_now_ = rule_step(
      Adam<false>{static_cast<float>(rate * correction / (1 - std::pow(static_cast<double>(beta1_), t))),
                  1.0F - beta1_, 1.0F - beta2_, static_cast<float>(epsilon_ * correction)});
  adamw_now_.kept = static_cast<float>(1 - rate * decay_.at(step));
}

/// Calls of_matrix(piece, part) and of_rest(part) for the parts of a range, in order.
template <typename OfMatrix, typename OfRest>
void MuonRule::for_each_piece(Range range, const OfMatrix& of_matrix, const OfRest& of_rest) const {
  auto piece =
      std::ranges::upper_bound(pieces_, range.first, {}, [](const Piece& p) { return p.range.last; });
  for (std::int64_t at = range.first; at < range.last;) {
    if (piece == pieces_.end() || range.last <= piece->range.first) return of_rest(Range{at, range.last});
    if (at < piece->range.first) of_rest(Range{at, piece->range.first});
    const Range part{std::max(at, piece->range.first), std::min(range.last, piece->range.last)};
    of_matrix(*piece, part);
    at = part.last;
    ++piece;
  }
}

/// The directions, before they are orthogonalized.
void MuonRule::measure(const UpdateContext& context, const float* gradients) {
  context.pool.run([&](int t) {
    const auto directions_of = [&](const Piece& piece, Range part) {
      context.kernels.update.apply(context.lanes[static_cast<std::size_t>(t)], direction_now_, part.size(),
                                   directions() + piece.place + (part.first - piece.range.first),
                                   gradients + part.first, {{slot(0) + part.first}});
    };
    for_each_piece(part_of(context.variables.dense_elements(), t, context.pool.size(), 1024), directions_of,
                   [](Range) {});
  });
}

void MuonRule::update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                      const float* gradients, Range range) const {
  float* const w = variables.trainable_address();
  for_each_piece(
      range,
      [&](const Piece& piece, Range part) {
        RuleStep step = rule_step(GradientDescent{static_cast<float>(rate_ * piece.factor)});
        step.kept = kept_;
        kernels.update.apply(lane, step, part.size(), w + part.first,
                             directions() + piece.place + (part.first - piece.range.first), {});
      },
      [&](Range part) {
        kernels.update.apply(lane, adamw_now_, part.size(), w + part.first,
                             gradients + (part.first - range.first),
                             {{slot(0) + part.first, slot(1) + part.first}});
      });
}

void MuonRule::update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                           const Variable& table, const SparseRows& gradient, Range rows) const {
  kernels.update.apply_rows(lane, adamw_now_,
                            {rows.first, rows.last, table.shape.num_elements() / table.shape[0],
                             *gradient.count, gradient.rows, gradient.values, !lazy()},
                            variables.trainable_address() + table.offset,
                            {{slot(0) + table.offset, slot(1) + table.offset}});
}

constexpr ParamSpec kOptions[] = {
    rate_option("0.001"),
    {"momentum", ParamType::node, "0.95", kShareRange, "what is kept of the mean of gradients"},
    {"nesterov", ParamType::boolean, "true", "", "look ahead: the direction is g + momentum * (m - g)"},
    {"iterations", ParamType::integer, "5", "[1, 100]", "of Newton and Schulz"},
    {"scale", ParamType::string, "adamw", "adamw|shape",
     "factor of the rate for a matrix of r rows and u units: adamw: 0.2 sqrt(max(r, u)), steps as large as "
     "those of AdamW; shape: sqrt(max(1, u / r))"},
    {"weight_decay", ParamType::node, "0.1", kDecayRange,
     "variables are multiplied by 1 - learning rate * weight_decay before the update"},
    {"adamw_for", ParamType::strings, "[*/embeddings]", "",
     "patterns of names of matrices that AdamW updates, such as those of the last layer"},
    {"adamw_rate_factor", ParamType::real, "1", "(0, 1e6]", "of the learning rate, where AdamW updates"},
    {"beta1", ParamType::real, "0.9", "[0, 1)", "AdamW: decay of the first moment"},
    {"beta2", ParamType::real, "0.95", "[0, 1)", "AdamW: decay of the second moment"},
    {"epsilon", ParamType::real, "1e-8", "(0, 1e6]", "AdamW: added to the corrected root"},
    kLazyOption,
};

}  // namespace

OptimizerEntry muon_optimizer() {
  return {"muon", "Jordan et al. 2024: orthogonalized momentum of matrices; AdamW for the rest", kOptions,
          [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<MuonRule>(p); }};
}

}  // namespace lockstep

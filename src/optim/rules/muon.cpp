// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Muon: Jordan et al. 2024, https://kellerjordan.github.io/posts/muon, in the form of torch.optim.Muon of
// PyTorch 2.9. Matrices move by their orthogonalized mean of gradients (optim/orthogonalizer.h), all other
// variables by AdamW (optim/matrix_rule.h).
//
// The factor of the rate, for rows r and units u, is 0.2 sqrt(max(r, u)) (Liu et al. 2025, arXiv:2502.16982,
// equation 4: the size of AdamW's steps, so both rules may have one rate) or sqrt(max(1, u / r)) (Jordan et
// al.).
#include <algorithm>

#include "optim/matrix_rule.h"
#include "optim/orthogonalizer.h"
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class MuonRule final : public MatrixRule {
 public:
  enum class Scale { adamw, shape };
  struct Options {
    RuleOptions common;
    AdamwOptions adamw;
    ScheduledNumber momentum;
    bool nesterov = false;
    int iterations = 0;
    Scale scale = Scale::adamw;
  };
  explicit MuonRule(Options o)
      : MatrixRule(std::move(o.common), o.adamw),
        momentum_(scheduled(std::move(o.momentum))),
        nesterov_(o.nesterov),
        iterations_(o.iterations),
        matches_adamw_(o.scale == Scale::adamw) {}

  const char* kind() const override { return "muon"; }

 private:
  std::string matrix_formula() const override;
  RuleStep direction_at(std::int64_t step, std::size_t number) override;
  void plan(const UpdateContext& context, std::span<Piece> pieces) override;

  // MatrixWork
  const std::vector<Matrix>& matrices() const override { return matrices_; }
  float* directions() const override { return direction_values(); }
  void compute(const Lane& lane, std::size_t matrix) override {
    orthogonalizer_->compute(lane, matrix, directions());
  }
  std::size_t memory_bytes() const override { return direction_bytes() + orthogonalizer_->memory_bytes(); }

  const ScheduledNumber& momentum_;
  bool nesterov_;
  int iterations_;
  bool matches_adamw_;
  std::vector<Matrix> matrices_;
  std::unique_ptr<Orthogonalizer> orthogonalizer_;
};

std::string MuonRule::matrix_formula() const {
  return fmt::format(
      "m += (1 - {0}) (g - m); w *= 1 - lr {1}; w -= lr {2} orthogonalized({3}), r x u the shape",
      momentum_.text(), decay().text(), matches_adamw_ ? "0.2 sqrt(max(r, u))" : "sqrt(max(1, u / r))",
      nesterov_ ? fmt::format("g + {} (m - g)", momentum_.text()) : "m");
}

void MuonRule::plan(const UpdateContext& context, std::span<Piece> pieces) {
  std::vector<Orthogonalizer::Matrix> shapes;
  for (Piece& piece : pieces) {
    const auto r = static_cast<double>(piece.rows), u = static_cast<double>(piece.units);
    piece.factor = matches_adamw_ ? 0.2 * std::sqrt(std::max(r, u)) : std::sqrt(std::max(1.0, u / r));
    shapes.push_back({piece.rows, piece.units, piece.place});
  }
  orthogonalizer_ = std::make_unique<Orthogonalizer>(context, std::move(shapes), iterations_);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    matrices_.push_back(
        {{pieces[i].place, pieces[i].place + pieces[i].range().size()}, orthogonalizer_->cost(i)});
}

RuleStep MuonRule::direction_at(std::int64_t step, std::size_t /*number*/) {
  const auto momentum = static_cast<float>(momentum_.at(step));
  return nesterov_ ? rule_step(MuonDirection<true>{1.0F - momentum, momentum})
                   : rule_step(MuonDirection<false>{1.0F - momentum, momentum});
}

using Options = MuonRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>("0.001"),
    option<&Options::momentum>("momentum", "0.95", kShareRange, "what is kept of the mean of gradients"),
    option<&Options::nesterov>("nesterov", "true", {}, "look ahead: the direction is g + momentum * (m - g)"),
    option<&Options::iterations>("iterations", "5", between(1, 100), "of Newton and Schulz"),
    option<&Options::scale>("scale", "adamw", one_of("adamw|shape"),
                            "factor of the rate for a matrix of r rows and u units: adamw: 0.2 sqrt(max(r, "
                            "u)), steps as large as "
                            "those of AdamW; shape: sqrt(max(1, u / r))"),
    weight_decay_option<&Options::common>("0.1", kDecoupledHelp),
    adamw_for_option<&Options::adamw>(),
    adamw_rate_option<&Options::adamw>(),
    beta1_option<&Options::adamw>("AdamW: decay of the first moment"),
    beta2_option<&Options::adamw>("AdamW: decay of the second moment"),
    adamw_epsilon_option<&Options::adamw>("AdamW: added to the corrected root"),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kMuonOptimizer = {
    "muon", "Jordan et al. 2024: orthogonalized momentum of matrices; AdamW for the rest", kOptions,
    make_rule<MuonRule>};

}  // namespace lockstep

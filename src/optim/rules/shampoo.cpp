// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Shampoo: Gupta, Koren and Singer 2018, arXiv:1802.09568, with blocks, means of statistics, roots every few
// steps and grafting as in Anil et al. 2020, arXiv:2002.09018 (sections 3 and 4). The mean of gradients is
// preconditioned, and norms are grafted block by block (Shi et al. 2023, arXiv:2309.06497). Blocks of
// matrices: optim/block_preconditioner.h; all other variables by AdamW: optim/matrix_rule.h.
#include <algorithm>

#include "core/log.h"
#include "core/range.h"
#include "optim/block_preconditioner.h"
#include "optim/matrix_rule.h"
#include "optim/rules/family.h"

namespace lockstep {

namespace {

class ShampooRule final : public MatrixRule {
 public:
  struct Options {
    RuleOptions common;
    AdamwOptions adamw;
    std::string grafting;
    std::int64_t block_size = 0, root_every = 0, start_step = 0;
    double statistics_decay = 0, exponent = 0, root_epsilon = 0;
  };
  explicit ShampooRule(Options o)
      : MatrixRule(std::move(o.common), o.adamw),
        grafting_(o.grafting),
        block_size_(o.block_size),
        root_every_(o.root_every),
        start_step_(o.start_step > 0 ? o.start_step : root_every_),
        kept_(o.statistics_decay),
        exponent_(o.exponent),
        root_epsilon_(o.root_epsilon) {}

  const char* kind() const override { return "shampoo"; }
  void measure(const UpdateContext& context, const float* gradients) override {
    gradients_ = gradients;
    MatrixRule::measure(context, gradients);
  }

 private:
  std::string matrix_formula() const override;
  RuleStep direction_at(std::int64_t step, std::size_t number) override;
  void reset_matrices(const Variable& variable) override;
  void plan(const UpdateContext& context, std::span<Piece> pieces) override;

  // MatrixWork
  const std::vector<Matrix>& matrices() const override { return matrices_; }
  float* directions() const override { return static_cast<float*>(results_.data()); }
  void own(std::span<const std::size_t> matrices) override { blocks_->own(matrices); }
  void compute(const Lane& lane, std::size_t matrix) override;
  void finish(const Lane& lane, std::size_t matrix) override {
    blocks_->place_result(lane, matrix, directions(), direction_values());
  }
  void reset() override { blocks_->reset(); }
  const std::vector<StateTensor>& state() const override { return state_; }
  std::string meaning_of_slots(const Variable& variable) const override {
    return is_matrix(variable) ? fmt::format("shampoo, blocks of {}, grafting {}", block_size_, grafting_)
                               : MatrixRule::meaning_of_slots(variable);
  }
  void read_state(std::size_t tensor, std::size_t matrix, float* to) const override {
    blocks_->read_state(matrix, state_of(tensor), to);
  }
  void write_state(std::size_t tensor, std::size_t matrix, const float* from) override {
    blocks_->write_state(matrix, state_of(tensor), from);
  }
  std::size_t memory_bytes() const override {
    return direction_bytes() + results_.size_bytes() + blocks_->memory_bytes();
  }
  std::size_t state_bytes() const override { return blocks_->state_bytes(); }
  static BlockPreconditioner::State state_of(std::size_t tensor) {
    return static_cast<BlockPreconditioner::State>(tensor % BlockPreconditioner::kNumStates);
  }

  const std::string grafting_;
  const std::int64_t block_size_, root_every_, start_step_;
  const double kept_, exponent_, root_epsilon_;

  std::vector<Matrix> matrices_;    ///< blocks
  std::vector<StateTensor> state_;  ///< of each variable as many as a block has
  std::unique_ptr<BlockPreconditioner> blocks_;
  Buffer results_;
  std::vector<BlockPreconditioner::Step> now_;  ///< of each class of variables
  const float* gradients_ = nullptr;            ///< of the step
};

std::string ShampooRule::matrix_formula() const {
  const std::string mean = kept_ == 1 ? "sum" : fmt::format("mean with decay {}", kept_);
  return fmt::format(
      "m += (1 - {}) (g - m); w *= 1 - lr {}; w -= lr L^-{} m R^-{}{}, where L is the {} of g g^T and R of "
      "g^T g, in blocks of at most {} x {}, with roots every {} updates from update {} on",
      beta1(), decay().text(), exponent_, exponent_,
      grafting_ == "none" ? "" : fmt::format(" with the norm of {}'s step", grafting_), mean, block_size_,
      block_size_, root_every_, start_step_);
}

/// Cuts `extent` into parts of nearly the same size, none of them larger than `most`.
std::vector<Range> parts_of(std::int64_t extent, std::int64_t most) {
  const std::int64_t count = (extent + most - 1) / most;
  std::vector<Range> parts;
  for (std::int64_t i = 0; i < count; ++i) parts.push_back({extent * i / count, extent * (i + 1) / count});
  return parts;
}

void ShampooRule::plan(const UpdateContext& context, std::span<Piece> pieces) {
  static constexpr std::string_view kNames[] = {"left_statistics", "right_statistics", "left_root",
                                                "right_root"};
  std::vector<BlockPreconditioner::Block> blocks;
  std::int64_t place = 0;
  for (const Piece& piece : pieces) {
    const std::size_t first_block = blocks.size();
    std::int64_t rows = 0, columns = 0;
    for (const Range r : parts_of(piece.rows, block_size_))
      for (const Range c : parts_of(piece.units, block_size_)) {
        const std::int64_t at = r.first * piece.units + c.first;
        blocks.push_back({.rows = r.size(),
                          .columns = c.size(),
                          .first = piece.variable->offset + at,
                          .stride = piece.units,
                          .place = place,
                          .direction = piece.place + at});
        place += VariableStore::padded(r.size() * c.size());
        rows = std::max(rows, r.size()), columns = std::max(columns, c.size());
      }
    for (int state = 0; state < BlockPreconditioner::kNumStates; ++state) {
      const std::int64_t side = state % 2 == 0 ? rows : columns;
      state_.push_back({kNames[state],
                        piece.variable,
                        {static_cast<std::int64_t>(first_block), static_cast<std::int64_t>(blocks.size())},
                        side * side});
    }
  }
  results_ = Buffer(context.device, static_cast<std::size_t>(place) * sizeof(float));
  blocks_ =
      std::make_unique<BlockPreconditioner>(context, std::move(blocks), static_cast<double>(root_every_));
  for (std::size_t i = 0; i < blocks_->blocks().size(); ++i) {
    const BlockPreconditioner::Block& block = blocks_->blocks()[i];
    matrices_.push_back({{block.place, block.place + block.rows * block.columns}, blocks_->cost(i)});
  }
}

/// Roots are due by the updates of a matrix, not by the steps of the run: its statistics are as old.
RuleStep ShampooRule::direction_at(std::int64_t /*step*/, std::size_t number) {
  const std::int64_t updates = counts().classes()[number].updates;
  const auto t = static_cast<double>(updates);
  const double c1 = 1 / (1 - std::pow(static_cast<double>(beta1()), t));
  now_.resize(counts().classes().size());
  BlockPreconditioner::Step& now = now_[number];
  now = {.kept = static_cast<float>(kept_),
         .gain = kept_ == 1 ? 1.0F : static_cast<float>(1 - kept_),
         .roots = {},
         .preconditions = updates >= start_step_,
         .grafts = grafting_ != "none",
         .mean_scale = static_cast<float>(c1)};
  if (updates == start_step_ || (updates > start_step_ && updates % root_every_ == 0))
    now.roots = InverseRoot::Power{.scale = kept_ == 1 ? 1 : 1 / (1 - std::pow(kept_, t)),
                                   .exponent = exponent_,
                                   .epsilon = root_epsilon_};
  const float gain1 = 1.0F - beta1(), gain2 = 1.0F - beta2();
  const auto mean_scale = static_cast<float>(c1), epsilon_now = static_cast<float>(epsilon());
  if (grafting_ == "none" || grafting_ == "sgd") return rule_step(MeanDirection{gain1, mean_scale});
  if (grafting_ == "adagrad") return rule_step(GraftDirection<true>{gain1, 0, mean_scale, 1, epsilon_now});
  const double c2 = grafting_ == "adam" ? 1 / std::sqrt(1 - std::pow(static_cast<double>(beta2()), t)) : 1.0;
  return rule_step(GraftDirection<false>{gain1, gain2, mean_scale, static_cast<float>(c2), epsilon_now});
}

void ShampooRule::reset_matrices(const Variable& variable) {
  if (blocks_ == nullptr) return;
  const Range own{variable.offset, variable.offset + variable.shape.num_elements()};
  for (std::size_t i = 0; i < blocks_->blocks().size(); ++i)
    if (const std::int64_t first = blocks_->blocks()[i].first; own.first <= first && first < own.last)
      blocks_->reset(i);
}

void ShampooRule::compute(const Lane& lane, std::size_t matrix) {
  const BlockPreconditioner::Step& now = now_[counts().class_at(blocks_->blocks()[matrix].first)];
  const int failed =
      blocks_->compute(lane, matrix, now, gradients_, slot(0), direction_values(), directions());
  if (failed > 0)
    log_warning(
        "shampoo: step {}: {} of the two roots of block {} could not be computed, and stay as they were: its "
        "statistics are not finite, or too small",
        step() + 1, failed, matrix);
}

using Options = ShampooRule::Options;
constexpr ParamSpec kOptions[] = {
    rate_option<&Options::common>("0.001"),
    beta1_option<&Options::adamw>("what is kept of the mean of gradients"),
    beta2_option<&Options::adamw>(
        "decay of the second moment: AdamW for the rest, and grafting adam and rmsprop"),
    adamw_epsilon_option<&Options::adamw>(
        "added to the root of the second moment: AdamW for the rest, and grafting"),
    option<&Options::grafting>("grafting", "adam", one_of("none|sgd|adagrad|rmsprop|adam"),
                               "the rule whose norm each block of a step gets, and which moves matrices "
                               "before start_step; none: no norm, and sgd before start_step"),
    option<&Options::block_size>("block_size", "128", between(1, 8192),
                                 "the most rows and columns of a block; larger matrices are cut evenly"),
    option<&Options::root_every>("root_every", "10", between(1, 1e9),
                                 "updates of a matrix from one computation of roots to the next"),
    option<&Options::start_step>(
        "start_step", "0", between(0, 1e9),
        "the first update of a matrix with roots, counted from 1; 0: that of root_every"),
    option<&Options::statistics_decay>(
        "statistics_decay", "0.95", above(0).up_to(1),
        "what is kept of the statistics in a step; 1: sums, as in the paper of 2018"),
    option<&Options::exponent>("exponent", "0.25", above(0).up_to(1),
                               "L^-exponent and R^-exponent precondition a matrix"),
    option<&Options::root_epsilon>("root_epsilon", "1e-6", between(1e-12, 1),
                                   "added to the eigenvalues of the statistics, times the largest of them"),
    weight_decay_option<&Options::common>("0.1", kDecoupledHelp),
    adamw_for_option<&Options::adamw>(),
    adamw_rate_option<&Options::adamw>(),
    lazy_option<&Options::common>(),
};

}  // namespace

extern const OptimizerEntry kShampooOptimizer = {
    "shampoo",
    "Gupta et al. 2018: matrices preconditioned by roots of their statistics, in blocks; AdamW for the rest",
    kOptions, make_rule<ShampooRule>};

}  // namespace lockstep

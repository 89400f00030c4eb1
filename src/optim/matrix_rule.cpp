// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/matrix_rule.h"

#include <algorithm>
#include <cmath>

#include "core/range.h"
#include "kernels/rules.h"
#include "optim/update_context.h"

namespace lockstep {

std::vector<NamePattern> patterns_of(const Params& options, const ParamSpec& option) {
  const std::vector<std::string>& texts = options.strings(option.name);
  return {texts.begin(), texts.end()};
}

MatrixRule::MatrixRule(RuleOptions&& options, const AdamwOptions& adamw)
    : UpdateRule(std::move(options.learning_rate), options.lazy),
      decay_(scheduled(std::move(options.weight_decay))),
      adamw_factor_(adamw.adamw_rate_factor),
      beta1_(adamw.beta1),
      beta2_(adamw.beta2),
      epsilon_(adamw.epsilon),
      adamw_for_(adamw.adamw_for) {}

std::string MatrixRule::formula() const {
  return fmt::format("matrices: {}; others: AdamW with betas {} and {}, epsilon {}, weight decay {}{}",
                     matrix_formula(), beta1_, beta2_, epsilon_, decay_.text(),
                     adamw_factor_ == 1 ? "" : fmt::format(", lr times {}", adamw_factor_));
}

bool MatrixRule::is_for_adamw(const std::string& name) const {
  return std::ranges::any_of(adamw_for_, [&](const NamePattern& p) { return p.matches(name); });
}

void MatrixRule::set_variables(Device& /*device*/, const VariableStore& variables,
                               std::span<const VariableId> own) {
  for (const VariableId id : own)
    if (is_matrix(variables[id])) matrix_variables_.push_back(&variables[id]);
}

MatrixWork* MatrixRule::matrix_work(const UpdateContext& context) {
  std::int64_t place = 0;
  for (const Variable* variable : matrix_variables_) {
    const std::int64_t count = variable->shape.num_elements(),
                       units = variable->shape[variable->shape.rank() - 1];
    pieces_.push_back({variable, count / units, units, place});
    place += VariableStore::padded(count);
  }
  directions_ = Buffer(context.device, static_cast<std::size_t>(place) * sizeof(float));
  plan(context, pieces_);
  return this;
}

void MatrixRule::prepare(std::int64_t step) {
  rate_ = learning_rate(step);
  kept_ = static_cast<float>(1 - rate_ * decay_.at(step));
  const double rate = rate_ * adamw_factor_;
  const std::size_t classes = counts().classes().size();
  direction_now_.resize(classes);
  adamw_now_.resize(classes);
  for (std::size_t i = 0; i < classes; ++i) {
    direction_now_[i] = direction_at(step, i);
    const auto t = static_cast<double>(counts().classes()[i].updates);
    const double correction = std::sqrt(1 - std::pow(static_cast<double>(beta2_), t));
    adamw_now_[i] = rule_step(
        Adam<false>{static_cast<float>(rate * correction / (1 - std::pow(static_cast<double>(beta1_), t))),
                    1.0F - beta1_, 1.0F - beta2_, static_cast<float>(epsilon_ * correction)});
    adamw_now_[i].kept = static_cast<float>(1 - rate * decay_.at(step));
  }
}

/// Calls of_matrix(piece, part) and of_rest(part) for the parts of a range, in order.
template <typename OfMatrix, typename OfRest>
void MatrixRule::for_each_piece(Range range, const OfMatrix& of_matrix, const OfRest& of_rest) const {
  auto piece =
      std::ranges::upper_bound(pieces_, range.first, {}, [](const Piece& p) { return p.range().last; });
  for (std::int64_t at = range.first; at < range.last;) {
    if (piece == pieces_.end() || range.last <= piece->range().first) return of_rest(Range{at, range.last});
    const Range matrix = piece->range();
    if (at < matrix.first) of_rest(Range{at, matrix.first});
    const Range part{std::max(at, matrix.first), std::min(range.last, matrix.last)};
    of_matrix(*piece, part);
    at = part.last;
    ++piece;
  }
}

void MatrixRule::measure(const UpdateContext& context, const float* gradients) {
  context.pool.run([&](int t) {
    const auto directions_of = [&](const Piece& piece, Range part) {
      const RuleStep& now = direction_now_[counts().class_at(piece.variable->offset)];
      context.kernels.update.apply(context.lanes[static_cast<std::size_t>(t)], now, part.size(),
                                   direction_values() + piece.place + (part.first - piece.variable->offset),
                                   gradients + part.first, {{slot(0) + part.first, slot(1) + part.first}});
    };
    for_each_piece(part_of(context.variables.dense_elements(), t, context.pool.size(), 1024), directions_of,
                   [](Range) {});
  });
}

void MatrixRule::update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                        const float* gradients, Range range) const {
  float* const w = variables.trainable_address();
  for_each_piece(
      range,
      [&](const Piece& piece, Range part) {
        RuleStep step = rule_step(GradientDescent{static_cast<float>(rate_ * piece.factor)});
        step.kept = kept_;
        kernels.update.apply(lane, step, part.size(), w + part.first,
                             direction_values() + piece.place + (part.first - piece.variable->offset), {});
      },
      [&](Range rest) {
        counts().for_each_part(rest, [&](Range part, std::size_t number) {
          kernels.update.apply(lane, adamw_now_[number], part.size(), w + part.first,
                               gradients + (part.first - range.first),
                               {{slot(0) + part.first, slot(1) + part.first}});
        });
      });
}

void MatrixRule::update_rows(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                             const Variable& table, const SparseRows& gradient, Range rows) const {
  kernels.update.apply_rows(lane, adamw_now_[counts().class_at(table.offset)],
                            {rows.first, rows.last, table.shape.num_elements() / table.shape[0],
                             gradient.count, gradient.most, gradient.rows, gradient.values, !lazy()},
                            variables.trainable_address() + table.offset,
                            {{slot(0) + table.offset, slot(1) + table.offset}});
}

}  // namespace lockstep

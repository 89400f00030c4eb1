// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/execution_plan.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/range.h"
#include "model/recomputation.h"

namespace lockstep {

namespace {

using Act = ExecutionPlan::Act;
using Phase = ExecutionPlan::Phase;
using Which = ExecutionPlan::Which;

/// Appends a range that follows the phase's.
void append(Phase& phase, const GradientRange& gradients) {
  if (gradients.range.size() == 0) return;
  if (phase.gradients.size() == 0) phase.gradients = {gradients.range.first, gradients.range.first};
  LOCKSTEP_CHECK(phase.gradients.last == gradients.range.first,
                 "gradients are not finished in the order of the flat range: {} follows {}",
                 gradients.range.first, phase.gradients.last);
  phase.gradients.last = gradients.range.last;
  phase.gaps.insert(phase.gaps.end(), gradients.gaps.begin(), gradients.gaps.end());
}

}  // namespace

// The flat gradients are in the order of the backward pass: the last variable first.
std::vector<GradientRange> gradient_ranges(const Graph& graph, const Graph::Calls& calls,
                                           const VariableStore& variables) {
  std::vector<GradientRange> all(calls.operations.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (calls.operations[i].node < 0) continue;
    const Graph::Node& node = graph.nodes()[static_cast<std::size_t>(calls.operations[i].node)];
    Range& range = all[i].range;
    for (int id = node.last_variable - 1; id >= node.first_variable; --id) {
      const Variable& variable = variables[static_cast<VariableId>(id)];
      if (!variable.trainable || variable.sparse_index >= 0) continue;
      const std::int64_t used = variable.offset + variable.shape.num_elements();
      const std::int64_t end = variable.offset + VariableStore::padded(variable.shape.num_elements());
      if (range.size() == 0) range = {variable.offset, variable.offset};
      LOCKSTEP_CHECK(range.last == variable.offset,
                     "gradients are not finished in the variables' order at {}", variable.name);
      range.last = end;
      if (end > used) all[i].gaps.push_back({used, end});
    }
  }
  return all;
}

ExecutionPlan::ExecutionPlan(const Spec& spec) : own_(spec.own), workers_(spec.workers) {
  add_forward(spec);
  if (spec.training) add_backward(spec);
  choose_unit(spec);
  phases_.back().losses_known = !spec.training;
  // With units the sums of all phases are in progress at the same time.
  for (Phase& phase : phases_) {
    phase.base = unit_ == 0 ? phase.gradients.first : 0;
    scratch_elements_ = std::max(scratch_elements_, phase.gradients.last - phase.base);
  }
  if (!spec.training) return;
  if (synchronises_ && spec.on_device) cut_after_loss();
  if (!synchronises_) cut_last_microshard(spec);
  assign_buckets(spec.buckets);
  release_variables(spec);
}

void ExecutionPlan::add_forward(const Spec& spec) {
  phases_.emplace_back().first = true;
  phases_.back().actions.push_back({Act::fetch});
  for (int i = 0; i < static_cast<int>(spec.calls.operations.size()); ++i) {
    if (spec.training && spec.calls.operations[static_cast<std::size_t>(i)].collective != nullptr) {
      synchronises_ = true;
      phases_.back().actions.push_back({Act::forward_local, i});
      phases_.back().sync = i;
      phases_.emplace_back();
    }
    phases_.back().actions.push_back({Act::forward, i});
  }
  phases_.back().actions.push_back({Act::loss});
  phases_.back().computes_loss = true;
}

void ExecutionPlan::add_backward(const Spec& spec) {
  const std::vector<std::vector<int>> recomputed_before = recomputations(spec.calls);
  for (int i = static_cast<int>(spec.calls.operations.size()) - 1; i >= 0; --i) {
    const Graph::Operation& operation = spec.calls.operations[static_cast<std::size_t>(i)];
    const GradientRange& gradients = spec.gradients[static_cast<std::size_t>(i)];
    if (!operation.backward && gradients.range.size() == 0) continue;
    const bool collective = operation.backward && operation.collective != nullptr;
    for (const int again : recomputed_before[static_cast<std::size_t>(i)])
      phases_.back().actions.push_back({Act::recompute, again});
    phases_.back().actions.push_back(
        {!operation.backward ? Act::no_gradient : (collective ? Act::backward_local : Act::backward), i});
    append(phases_.back(), gradients);
    if (!collective) continue;
    phases_.back().sync = i;
    phases_.back().sync_backward = true;
    phases_.emplace_back().actions.push_back({Act::backward, i});
  }
}

// Each worker must have work: where there are fewer groups than workers, they share the microshards of a
// group, and all of them are in flight.
void ExecutionPlan::choose_unit(const Spec& spec) {
  if (!synchronises_ || spec.on_device) return;
  std::int64_t unit = 1;
  for (const Graph::Operation& operation : spec.calls.operations) {
    if (operation.collective == nullptr) continue;
    const int group = operation.collective->collective_traits().group_size;
    if (group == 0) return;
    unit = std::lcm(unit, std::int64_t{group});
    if (unit > own_.size()) return;
  }
  if (own_.first % unit == 0 && own_.last % unit == 0 && own_.size() / unit >= workers_)
    unit_ = static_cast<int>(unit);
}

void ExecutionPlan::cut_after_loss() {
  const auto whole = std::ranges::find_if(phases_, &Phase::computes_loss);
  const auto loss = std::ranges::find(whole->actions, Act::loss, &Action::act);
  Phase forward;
  forward.actions.assign(whole->actions.begin(), loss + 1);
  forward.first = std::exchange(whole->first, false);
  forward.computes_loss = std::exchange(whole->computes_loss, false);
  forward.losses_known = true;
  whole->actions.erase(whole->actions.begin(), loss + 1);
  phases_.insert(whole, std::move(forward));
}

void ExecutionPlan::cut_last_microshard(const Spec& spec) {
  const std::span<const Range> buckets = spec.overlap ? spec.buckets : std::span<const Range>();
  if (!spec.on_device && buckets.size() < 2) return;
  Phase whole = std::move(phases_.front());
  phases_.clear();
  const auto begin_part = [&](std::int64_t gradient) {
    phases_.push_back({.which = Which::last, .gradients = {gradient, gradient}, .base = whole.base});
  };
  if (own_.size() > workers_) {
    phases_.push_back(whole);
    phases_.back().which = Which::all_but_last;
  }
  begin_part(whole.base);
  phases_.back().first = true;
  std::size_t bucket = 0;
  for (const Action& action : whole.actions) {
    Phase& part = phases_.back();
    part.actions.push_back(action);
    if (action.act == Act::loss) {
      part.computes_loss = true;
      if (!spec.on_device) continue;
      part.losses_known = true;
      begin_part(whole.base);
    }
    if (action.act != Act::backward && action.act != Act::no_gradient) continue;
    append(part, spec.gradients[static_cast<std::size_t>(action.operation)]);
    const std::int64_t end = part.gradients.last;
    const std::size_t before = bucket;
    while (bucket + 1 < buckets.size() && end >= buckets[bucket].last) ++bucket;
    if (bucket > before) begin_part(end);
  }
}

// A bucket is complete as soon as all of its gradients are.
void ExecutionPlan::assign_buckets(std::span<const Range> buckets) {
  std::int64_t next = 0;
  for (Phase& phase : phases_) {
    phase.buckets = {next, next};
    if (phase.completed().size() == 0) continue;
    while (next < std::ssize(buckets) &&
           buckets[static_cast<std::size_t>(next)].last <= phase.completed().last)
      ++next;
    phase.buckets.last = next;
  }
}

std::span<const Phase> ExecutionPlan::forward_totals() const {
  std::size_t count = 0;
  for (std::size_t i = 0; i < phases_.size() && !phases_[i].sync_backward; ++i)
    if (phases_[i].sync >= 0) count = i + 1;
  return std::span(phases_).first(count);
}

// After the loss a layer reads its variables in its backward calls, and before them when it is recomputed.
// Those that share them are called before their owner. The second call of a synchronised layer comes after
// the synchronisation point that ends the phase of its gradients.
void ExecutionPlan::release_variables(const Spec& spec) {
  std::int64_t complete = 0;
  for (Phase& phase : phases_) {
    complete = std::max(complete, phase.completed().last);
    phase.released = complete;
    if (phase.sync < 0 || !phase.sync_backward) continue;
    const Range own = spec.gradients[static_cast<std::size_t>(phase.sync)].range;
    if (own.size() > 0) phase.released = std::min(complete, own.first);
  }
}

Range ExecutionPlan::microshards(int worker, Which which) const {
  const std::int64_t unit = std::max(unit_, 1);
  Range part = part_of(own_.size() / unit, worker, workers_);
  part = {part.first * unit, part.last * unit};
  if (which == Which::all_but_last) part.last = std::max(part.first, part.last - 1);
  if (which == Which::last) part.first = std::max(part.first, part.last - 1);
  return {own_.first + part.first, own_.first + part.last};
}

std::vector<Range> ExecutionPlan::microshards_of_workers() const {
  std::vector<Range> all;
  for (int worker = 0; worker < workers_; ++worker) all.push_back(microshards(worker, Which::all));
  return all;
}

}  // namespace lockstep

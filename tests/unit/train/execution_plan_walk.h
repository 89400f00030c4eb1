// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Nets, and a walk through a plan as the executor does it, for execution_plan_test.cpp: action by action,
// each is checked against what came before.
#pragma once

#include <algorithm>
#include <map>
#include <set>

#include "comm/buckets.h"
#include "comm/tree.h"
#include "config/yaml_node.h"
#include "core/range.h"
#include "model/recomputation.h"
#include "train/execution_plan.h"

namespace lockstep {
namespace {

using Act = ExecutionPlan::Act;
using Phase = ExecutionPlan::Phase;
using Which = ExecutionPlan::Which;

constexpr const char* kPlain = "[dense: {units: 5}, relu, dense: {units: 7}, tanh, dense: {units: 3}]";
constexpr const char* kNorm =
    "[dense: {units: 5}, batch_norm, relu, dense: {units: 7}, batch_norm: {group: 1}]";
/// No gradient comes to the first layer's variables; the last two layers share theirs.
constexpr const char* kStopped =
    "[dense: {units: 4}, stop_gradient, dense: {units: 4, name: d}, dense: {units: 4, shared_with: d}]";
/// Segments that are recomputed: with a synchronised layer, with shared variables, with a layer that no
/// gradient reaches.
constexpr const char* kRecomputed =
    "[dense: {units: 4, recompute: a}, batch_norm: {recompute: a}, tanh: {name: t, recompute: a}, "
    "dense: {units: 4, name: d, recompute: b}, tanh: {name: u, recompute: b}, stop_gradient: {recompute: b}, "
    "dense: {units: 4, name: e, inputs: [u], shared_with: d, recompute: b}, tanh: {name: v, recompute: b}, "
    "add: {inputs: [stop_gradient1, v]}]";
constexpr const char* kNets[] = {kPlain, kNorm, kStopped, kRecomputed};

/// A net, and the plans of its modes.
class Net {
 public:
  explicit Net(const char* layers, std::int64_t first_bytes = 64, std::int64_t bytes = 128)
      : graph_(graph_from_config(parse_yaml(layers, "test"), Shape{4})) {
    graph_.finish(variables_);
    variables_.commit(cpu_device());
    buckets_ = make_buckets(variables_.dense_elements(), variables_.cut_points(), first_bytes, bytes);
  }

  struct Setting {
    bool training = true, on_device = false, overlap = false;
    int rank = 0, ranks = 1, shards = 1, workers = 1;
  };
  ExecutionPlan plan(const Setting& s) {
    calls_ = graph_.calls(s.training);
    find_recomputed(calls_);
    gradients_ = gradient_ranges(graph_, calls_, variables_);
    return ExecutionPlan({.calls = calls_,
                          .gradients = gradients_,
                          .training = s.training,
                          .on_device = s.on_device,
                          .own = shards_of_rank(s.rank, s.ranks, s.shards),
                          .workers = s.workers,
                          .buckets = s.training ? std::span<const Range>(buckets_) : std::span<const Range>(),
                          .overlap = s.overlap});
  }
  const Graph::Calls& calls() const { return calls_; }
  const std::vector<GradientRange>& gradients() const { return gradients_; }
  const std::vector<Range>& buckets() const { return buckets_; }
  std::int64_t elements() const { return variables_.dense_elements(); }
  std::int64_t trainable_values() const {
    std::int64_t values = 0;
    for (const Variable& variable : variables_.variables())
      if (variable.trainable) values += variable.shape.num_elements();
    return values;
  }

 private:
  Graph graph_;
  VariableStore variables_;
  std::vector<Range> buckets_;
  Graph::Calls calls_;
  std::vector<GradientRange> gradients_;
};

/// What a microshard must do, in order.
std::vector<std::pair<Act, int>> expected_actions(const Net& net, bool training) {
  std::vector<std::pair<Act, int>> actions = {{Act::fetch, -1}};
  const auto& operations = net.calls().operations;
  const int count = static_cast<int>(operations.size());
  for (int i = 0; i < count; ++i) {
    if (training && operations[static_cast<std::size_t>(i)].collective != nullptr)
      actions.emplace_back(Act::forward_local, i);
    actions.emplace_back(Act::forward, i);
  }
  actions.emplace_back(Act::loss, -1);
  std::set<int> recomputed;  // segments
  for (int i = count - 1; training && i >= 0; --i) {
    const Graph::Operation& operation = operations[static_cast<std::size_t>(i)];
    if (operation.backward && operation.segment >= 0 && recomputed.insert(operation.segment).second)
      for (int j = 0; j < count; ++j)
        if (const Graph::Operation& other = operations[static_cast<std::size_t>(j)];
            other.recomputed && other.segment == operation.segment)
          actions.emplace_back(Act::recompute, j);
    if (operation.backward && operation.collective != nullptr) actions.emplace_back(Act::backward_local, i);
    if (operation.backward) actions.emplace_back(Act::backward, i);
    if (!operation.backward && net.gradients()[static_cast<std::size_t>(i)].range.size() > 0)
      actions.emplace_back(Act::no_gradient, i);
  }
  return actions;
}

/// Walks through a plan. Failures are reported by the caller's EXPECT_EQ of problem().
class Walk {
 public:
  Walk(const Net& net, const ExecutionPlan& plan, const Net::Setting& setting)
      : net_(net), plan_(plan), setting_(setting), expected_(expected_actions(net, setting.training)) {
    for (const Phase& phase : plan.phases()) run(phase);
    for (std::int64_t shard = plan.own().first; shard < plan.own().last; ++shard)
      check(done_[shard] == expected_.size(), "a microshard is not finished");
    if (!setting.training) return;
    check(summed_ == net.elements(), "not all gradients are summed");
    check(next_bucket_ == std::ssize(net.buckets()), "not all buckets have started");
    check(released_ == net.elements(), "not all variables are released");
  }

  const std::string& problem() const { return problem_; }
  const std::vector<std::pair<int, bool>>& syncs() const { return syncs_; }
  int phases_with_losses_known() const { return losses_known_; }

 private:
  void check(bool holds, const char* what) {
    if (!holds && problem_.empty()) problem_ = what;
  }
  bool all_have_done(Act act, int operation) {
    const auto at = std::ranges::find(expected_, std::pair(act, operation));
    const auto needed = static_cast<std::size_t>(at - expected_.begin()) + 1;
    for (std::int64_t shard = plan_.own().first; shard < plan_.own().last; ++shard)
      if (done_[shard] < needed) return false;
    return true;
  }
  void run(const Phase& phase) {
    for (int worker = 0; worker < setting_.workers; ++worker) {
      const Range shards = plan_.microshards(worker, phase.which);
      for (std::int64_t shard = shards.first; shard < shards.last; ++shard) run(phase, worker, shard);
    }
    if (phase.losses_known) {
      ++losses_known_;
      check(all_have_done(Act::loss, -1), "a loss is not known yet");
    }
    check(
        phase.gradients.first >= phase.base && phase.gradients.last - phase.base <= plan_.scratch_elements(),
        "gradients do not fit the scratch");
    sum(phase);
    if (setting_.training) release(phase);
    if (phase.sync < 0) return;
    check(phase.which == Which::all, "a part of the microshards synchronises");
    check(all_have_done(phase.sync_backward ? Act::backward_local : Act::forward_local, phase.sync),
          "a microshard is not ready to synchronise");
    syncs_.emplace_back(phase.sync, phase.sync_backward);
  }
  void run(const Phase& phase, int worker, std::int64_t shard) {
    const int slot = plan_.slot(worker, static_cast<int>(shard));
    check(slot >= 0 && slot < plan_.num_slots(), "no such slot");
    if (phase.first) {
      const auto found = in_slot_.find(slot);
      check(found == in_slot_.end() || done_[found->second] == expected_.size(), "a slot is in use");
      check(done_[shard] == 0, "a microshard begins twice");
      in_slot_[slot] = shard;
    }
    check(in_slot_.contains(slot) && in_slot_[slot] == shard, "another microshard is in the slot");
    for (const ExecutionPlan::Action& action : phase.actions) {
      const std::size_t number = done_[shard]++;
      check(number < expected_.size() && expected_[number] == std::pair(action.act, action.operation),
            "an action is out of order");
      if (action.act == Act::forward && is_synchronised(action.operation))
        check(has_synchronised(action.operation, false), "forward before the sums");
      if (action.act == Act::backward && is_synchronised(action.operation))
        check(has_synchronised(action.operation, true), "backward before the sums");
      write_gradients(phase, action, shard);
    }
  }
  /// No microshard uses a released variable any more, itself or through a layer that shares it.
  void release(const Phase& phase) {
    check(phase.released >= released_ && phase.released <= summed_, "a variable is released without its sum");
    released_ = phase.released;
    for (int i = 0; i < std::ssize(net_.calls().operations); ++i) {
      const Graph::Operation& operation = net_.calls().operations[static_cast<std::size_t>(i)];
      const int owner = operation.owner >= 0 ? operation.owner : i;
      const Range own = net_.gradients()[static_cast<std::size_t>(owner)].range;
      if (own.size() == 0 || own.first >= released_) continue;
      if (operation.backward)
        check(all_have_done(Act::backward, i), "a variable is released before its last use");
      if (operation.recomputed)
        check(all_have_done(Act::recompute, i), "a variable is released before its last use");
    }
  }
  bool is_synchronised(int operation) const {
    return setting_.training && net_.calls().operations[static_cast<std::size_t>(operation)].collective;
  }
  bool has_synchronised(int operation, bool backward) const {
    return std::ranges::find(syncs_, std::pair(operation, backward)) != syncs_.end();
  }
  void write_gradients(const Phase& phase, const ExecutionPlan::Action& action, std::int64_t shard) {
    const bool collective = action.operation >= 0 && is_synchronised(action.operation);
    if (action.act != Act::backward_local && action.act != Act::no_gradient &&
        (action.act != Act::backward || collective))
      return;
    const GradientRange& own = net_.gradients()[static_cast<std::size_t>(action.operation)];
    if (own.range.size() == 0) return;
    check(own.range.first >= phase.gradients.first && own.range.last <= phase.gradients.last,
          "a gradient lies outside its phase's range");
    check(written_[shard] == own.range.first, "gradients are not written in order");
    written_[shard] = own.range.last;
    for (const Range& gap : own.gaps)
      check(std::ranges::any_of(phase.gaps, [&](const Range& g) { return g.first == gap.first; }),
            "a gap is not kept at zero");
  }
  void sum(const Phase& phase) {
    const Range completed = phase.completed();
    if (completed.size() > 0) {
      check(completed.first == summed_, "gradients are summed twice, or left out");
      summed_ = completed.last;
      for (std::int64_t shard = plan_.own().first; shard < plan_.own().last; ++shard)
        check(written_[shard] >= summed_, "a gradient is summed before it is complete");
    }
    for (std::int64_t bucket = phase.buckets.first; bucket < phase.buckets.last; ++bucket) {
      check(bucket == next_bucket_++, "buckets start out of order");
      check(net_.buckets()[static_cast<std::size_t>(bucket)].last <= summed_, "a bucket starts too early");
    }
  }

  const Net& net_;
  const ExecutionPlan& plan_;
  const Net::Setting& setting_;
  std::vector<std::pair<Act, int>> expected_;
  std::map<std::int64_t, std::size_t> done_;      ///< actions, by microshard
  std::map<std::int64_t, std::int64_t> written_;  ///< gradients, by microshard
  std::map<int, std::int64_t> in_slot_;           ///< microshard, by slot
  std::vector<std::pair<int, bool>> syncs_;
  std::int64_t summed_ = 0, released_ = 0, next_bucket_ = 0;
  int losses_known_ = 0;
  std::string problem_;
};

}  // namespace
}  // namespace lockstep

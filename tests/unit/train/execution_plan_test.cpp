// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Properties of execution plans, for all ranks of several sizes in one process: a plan is walked through as
// the executor does it, action by action, and each step is checked against what came before.
#include "train/execution_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "comm/buckets.h"
#include "comm/tree.h"
#include "config/yaml_node.h"
#include "core/range.h"

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
constexpr const char* kNets[] = {kPlain, kNorm, kStopped};

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
  for (int i = count - 1; training && i >= 0; --i) {
    const Graph::Operation& operation = operations[static_cast<std::size_t>(i)];
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
      if (own.size() > 0 && own.first < released_ && operation.backward)
        check(all_have_done(Act::backward, i), "a variable is released before its last use");
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

/// Calls check(net, setting) for all nets, modes, sizes and ranks. Some ranks have no microshards.
template <typename Check>
void for_all_settings(Check check) {
  for (const char* layers : kNets) {
    Net net(layers);
    for (const int flags : {0, 1, 2, 3, 4, 6})  // training, on a device, overlap
      for (const int ranks : {1, 2, 3, 5})
        for (const int shards : {1, 2, 3, 4, 7})
          for (const int workers : {1, 2, 3})
            for (int rank = 0; rank < ranks; ++rank) {
              const bool on_device = (flags & 2) != 0;
              if (on_device && workers > 1) continue;
              const Net::Setting setting{.training = flags < 4,
                                         .on_device = on_device,
                                         .overlap = (flags & 1) != 0,
                                         .rank = rank,
                                         .ranks = ranks,
                                         .shards = shards,
                                         .workers = workers};
              SCOPED_TRACE(::testing::Message()
                           << layers << " training " << setting.training << " device " << on_device
                           << " overlap " << setting.overlap << " rank " << rank << "/" << ranks << " shards "
                           << shards << " workers " << workers);
              check(net, setting);
              if (::testing::Test::HasFailure()) return;
            }
  }
}

TEST(ExecutionPlan, EveryMicroshardDoesAllInOrder) {
  for_all_settings([](Net& net, const Net::Setting& setting) {
    const ExecutionPlan plan = net.plan(setting);
    EXPECT_EQ(Walk(net, plan, setting).problem(), "");
  });
}

TEST(ExecutionPlan, AllRanksSynchroniseAlike) {
  for_all_settings([](Net& net, Net::Setting setting) {
    const ExecutionPlan own = net.plan(setting);
    const auto syncs = Walk(net, own, setting).syncs();
    std::size_t expected = 0;
    for (const Graph::Operation& operation : net.calls().operations)
      if (setting.training && operation.collective != nullptr) expected += operation.backward ? 2 : 1;
    EXPECT_EQ(syncs.size(), expected);
    EXPECT_EQ(own.synchronises(), expected > 0);
    setting.rank = 0;
    const ExecutionPlan first = net.plan(setting);
    EXPECT_EQ(syncs, Walk(net, first, setting).syncs());
  });
}

/// All forward totals, and nothing that comes after them.
TEST(ExecutionPlan, ForwardTotalsAreAPartOfTheForwardPass) {
  for_all_settings([](Net& net, const Net::Setting& setting) {
    const ExecutionPlan plan = net.plan(setting);
    std::ptrdiff_t expected = 0, found = 0;
    for (const Graph::Operation& operation : net.calls().operations)
      expected += setting.training && operation.collective != nullptr;
    for (const ExecutionPlan::Phase& phase : plan.forward_totals()) {
      found += phase.sync >= 0 && !phase.sync_backward;
      EXPECT_FALSE(phase.sync_backward || phase.computes_loss || phase.losses_known);
      EXPECT_EQ(phase.gradients.size() + phase.buckets.size(), 0);
      EXPECT_EQ(phase.which, ExecutionPlan::Which::all);
    }
    EXPECT_EQ(found, expected);
    EXPECT_TRUE(found > 0 || plan.forward_totals().empty());
  });
}

TEST(ExecutionPlan, LossesAreKnownOncePerStep) {
  for_all_settings([](Net& net, const Net::Setting& setting) {
    const ExecutionPlan plan = net.plan(setting);
    const bool needed = setting.on_device || !setting.training;
    EXPECT_EQ(Walk(net, plan, setting).phases_with_losses_known(), needed ? 1 : 0);
    for (const Phase& phase : plan.phases())
      EXPECT_EQ(phase.computes_loss, std::ranges::find(phase.actions, Act::loss,
                                                       &ExecutionPlan::Action::act) != phase.actions.end());
  });
}

TEST(ExecutionPlan, WithoutOverlapOnTheCpuOnePhase) {
  Net net(kPlain);
  const ExecutionPlan plan = net.plan({.shards = 4, .workers = 2});
  ASSERT_EQ(plan.phases().size(), 1U);
  EXPECT_EQ(plan.phases()[0].which, Which::all);
  EXPECT_EQ(plan.phases()[0].buckets.size(), std::ssize(net.buckets()));
  EXPECT_EQ(plan.num_slots(), 2);
}

TEST(ExecutionPlan, OverlapCutsTheLastMicroshard) {
  Net net(kPlain, 192, 256);  // a bucket per layer
  ASSERT_EQ(net.buckets().size(), 3U);
  const ExecutionPlan several = net.plan({.overlap = true, .shards = 5, .workers = 2});
  ASSERT_EQ(several.phases().size(), 1 + net.buckets().size());
  EXPECT_EQ(several.phases()[0].which, Which::all_but_last);
  EXPECT_EQ(several.phases()[0].completed().size(), 0);
  for (std::size_t i = 1; i < several.phases().size(); ++i) {
    EXPECT_EQ(several.phases()[i].which, Which::last);
    EXPECT_EQ(several.phases()[i].buckets.size(), 1);
  }
  const ExecutionPlan one_each = net.plan({.overlap = true, .shards = 2, .workers = 2});
  EXPECT_EQ(one_each.phases().size(), net.buckets().size()) << "nothing but last microshards";
}

TEST(ExecutionPlan, DevicesCutAfterTheLoss) {
  Net net(kPlain);
  const ExecutionPlan one = net.plan({.on_device = true, .shards = 1});
  ASSERT_EQ(one.phases().size(), 2U);
  EXPECT_EQ(one.phases()[0].actions.back().act, Act::loss);
  EXPECT_TRUE(one.phases()[0].losses_known);
  const ExecutionPlan several = net.plan({.on_device = true, .shards = 3});
  ASSERT_EQ(several.phases().size(), 3U);
  EXPECT_EQ(several.phases()[0].which, Which::all_but_last);
  Net norm(kNorm);
  const ExecutionPlan synchronised = norm.plan({.on_device = true, .shards = 3});
  const ExecutionPlan on_cpu = norm.plan({.shards = 3});
  EXPECT_EQ(synchronised.phases().size(), on_cpu.phases().size() + 1);
  EXPECT_EQ(synchronised.num_slots(), 3);
}

TEST(ExecutionPlan, GradientRangesCoverAllElements) {
  for (const char* layers : kNets) {
    Net net(layers);
    const ExecutionPlan plan = net.plan({});
    std::int64_t used = 0, next = 0;
    for (auto range = net.gradients().rbegin(); range != net.gradients().rend(); ++range) {
      if (range->range.size() == 0) continue;
      EXPECT_EQ(range->range.first, next) << layers;
      next = range->range.last;
      used += range->range.size();
      for (const Range& gap : range->gaps) {
        EXPECT_GE(gap.first, range->range.first);
        EXPECT_LE(gap.last, range->range.last);
        used -= gap.size();
      }
    }
    EXPECT_EQ(next, net.elements()) << layers;
    EXPECT_EQ(used, net.trainable_values()) << layers << ": the rest are gaps";
  }
}

TEST(ExecutionPlan, WorkersShareTheMicroshards) {
  for_all_settings([](Net& net, const Net::Setting& setting) {
    const ExecutionPlan plan = net.plan(setting);
    std::int64_t next = plan.own().first;
    for (int worker = 0; worker < setting.workers; ++worker) {
      const Range all = plan.microshards(worker, Which::all);
      const Range most = plan.microshards(worker, Which::all_but_last);
      const Range last = plan.microshards(worker, Which::last);
      EXPECT_EQ(all.first, next);
      EXPECT_EQ(most.first, all.first);
      EXPECT_EQ(most.last, last.first);
      EXPECT_EQ(last.last, all.last);
      EXPECT_EQ(last.size(), std::min<std::int64_t>(1, all.size()));
      next = all.last;
    }
    EXPECT_EQ(next, plan.own().last);
  });
}

// Statistics of groups: a worker carries whole groups through the net, and needs memory for one of them.
TEST(ExecutionPlan, GroupsThatAWorkerHasAloneNeedTheirOwnMemoryOnly) {
  constexpr const char* kGroups =
      "[dense: {units: 5}, batch_norm: {group: 2}, relu, dense: {units: 7}, batch_norm: {group: 4}]";
  Net net(kGroups);
  for (const int ranks : {1, 2, 3, 4})
    for (int rank = 0; rank < ranks; ++rank)
      for (const int workers : {1, 2, 3}) {
        SCOPED_TRACE(testing::Message()
                     << "rank " << rank << " of " << ranks << ", " << workers << " workers");
        const ExecutionPlan plan = net.plan({.rank = rank, .ranks = ranks, .shards = 24, .workers = workers});
        const Range own = plan.own();
        const bool whole = own.first % 4 == 0 && own.last % 4 == 0 && own.size() / 4 >= workers;
        ASSERT_EQ(plan.unit(), whole ? 4 : 0);
        EXPECT_EQ(plan.num_slots(), whole ? 4 * workers : own.size());
        std::int64_t next = own.first;
        for (const Range& range : plan.microshards_of_workers()) {
          EXPECT_EQ(range.first, next);
          EXPECT_TRUE(!whole || range.first % 4 == 0);
          next = range.last;
        }
        EXPECT_EQ(next, own.last);
        if (!whole) continue;
        EXPECT_EQ(plan.scratch_elements(), net.elements()) << "all phases are in progress at the same time";
        for (const Phase& phase : plan.phases()) EXPECT_EQ(phase.base, 0);
        for (int shard = 0; shard < 4; ++shard)
          EXPECT_EQ(plan.slot(workers - 1, shard), (workers - 1) * 4 + shard);
      }
  EXPECT_EQ(net.plan({.on_device = true, .shards = 24}).unit(), 0);
  EXPECT_EQ(Net(kNorm).plan({.shards = 24}).unit(), 0) << "one layer takes the whole batch";
}

}  // namespace
}  // namespace lockstep

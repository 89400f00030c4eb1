// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Properties of execution plans, for all ranks of several sizes in one process.
#include "train/execution_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "unit/train/execution_plan_walk.h"

namespace lockstep {
namespace {

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

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/sync_point.h"

#include "core/error.h"

namespace lockstep {

namespace {

int checked_group(const CollectiveLayer& layer, int shards) {
  const int group = layer.collective_traits().group_size;
  LOCKSTEP_CHECK(group == 0 || shards % group == 0, "layer {}: group {} of {} shards", layer.name(), group,
                 shards);
  return group;
}

// The sums are the first lane's work, on its stream.
SmallSum make_sum(const ExecutorContext& context, const CollectiveLayer& layer,
                  CollectiveLayer::Reduction reduction, bool whole) {
  const Lane& lane = context.lanes.front();
  const NormKernels& norm = context.kernels.norm;
  const auto merge = [&norm, &lane, reduction](const TreeMerges& tree, double* in, double* out) {
    if (reduction.merge == CollectiveLayer::Merge::moments)
      norm.merge_moments(lane, (reduction.width - 1) / 2, tree, in, out);
    else
      norm.merge_sums(lane, reduction.width, tree, in, out);
  };
  return SmallSum(context.sync, context.shards, checked_group(layer, context.shards), reduction.width, merge,
                  {context.device, lane.stream, context.direct_sync, whole});
}

}  // namespace

SyncPoint::SyncPoint(const ExecutorContext& context, CollectiveLayer& layer, bool group_by_group)
    : lane_(context.lanes.front()),
      kernels_(context.kernels),
      variables_(context.variables),
      layer_(layer),
      forward_name_("batch statistics of " + layer.name()),
      backward_name_("batch gradient sums of " + layer.name()),
      forward_(make_sum(context, layer, layer.collective_traits().forward, true)),
      backward_(make_sum(context, layer, layer.collective_traits().backward, false)),
      totals_(static_cast<std::size_t>(forward_.num_groups())),
      merged_(group_by_group) {}

std::span<const double* const> SyncPoint::sum(bool backward) {
  begin(backward);
  exchange(backward);
  return finish(backward);
}

std::span<const double* const> SyncPoint::finish(bool backward) {
  SmallSum& sums = of(backward);
  sums.merge_all();
  for (int group = 0; group < sums.num_groups(); ++group)
    totals_[static_cast<std::size_t>(group)] = sums.total(group);
  const CollectiveLayer::Reduced reduced{kernels_, lane_, variables_, totals_,
                                         backward ? nullptr : sums.whole()};
  backward ? layer_.backward_reduced(reduced) : layer_.forward_reduced(reduced);
  return totals_;
}

void SyncPoint::sum_forward_group(const Lane& lane, int group) {
  layer_.forward_group({kernels_, lane, variables_, group, forward_.merge_group(group)});
}

void SyncPoint::sum_backward_group(const Lane& lane, int group) {
  layer_.backward_group({kernels_, lane, variables_, group, backward_.merge_group(group)});
}

}  // namespace lockstep

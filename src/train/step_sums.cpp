// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/step_sums.h"

#include <algorithm>

#include "comm/buckets.h"
#include "data/step_plan.h"
#include "train/trainer_options.h"

namespace lockstep {

namespace {

std::vector<Range> buckets_of(const VariableStore& variables, const TrainerOptions& options) {
  if (const auto ownership = options.reducer.ownership()) return ownership->buckets();
  return make_buckets(variables.dense_elements(), variables.cut_points(), options.bucket_first_bytes,
                      options.bucket_bytes);
}

}  // namespace

GradientReducerOptions placed(GradientReducerOptions options, const ExecutorContext& context,
                              const NodeArithmetic& arithmetic) {
  const bool on_host = context.device.is_host();
  LOCKSTEP_CHECK(std::holds_alternative<FastSum>(options.sum) ||
                     std::holds_alternative<HostTreeSum>(options.sum) == on_host,
                 "the sum of gradients is that of another device");
  if (on_host) return options;
  auto* const tree = std::get_if<DeviceTreeSum>(&options.sum);
  if (tree == nullptr && !std::get<FastSum>(options.sum).place)
    std::get<FastSum>(options.sum).place.emplace();
  ReducerDevice& place = tree != nullptr ? tree->place : *std::get<FastSum>(options.sum).place;
  place.device = &context.device;
  place.stream = context.stream();
  place.arithmetic = &arithmetic;
  return options;
}

StepSums::StepSums(const ExecutorContext& context, Communicator& gradients, Communicator& control,
                   const StepPlan& plan, const TrainerOptions& options, int leaf_doubles)
    : pool_(context.pool),
      ranks_(control.size()),
      arithmetic_(context.kernels.elementwise),
      ownership_(gradients.size() > 1 ? options.reducer.ownership() : nullptr),
      own_(ownership_ ? ownership_->parts(gradients.rank())
                      : std::vector<Range>{{0, context.variables.dense_elements()}}),
      reducer_(gradients, &context.pool, context.shards, context.variables.dense_elements(),
               buckets_of(context.variables, options), placed(options.reducer, context, arithmetic_)),
      exchange_(control, context.shards, 0, leaf_doubles) {
  exchange_.set_rank_values(kRankValues);
  if (context.variables.sparse().empty()) return;
  sparse_ = std::make_unique<SparseGradients>(
      DeviceSparseSum::Place{context.kernels, context.device, context.stream()}, control, context.pool,
      context.variables, context.shards, std::ranges::max(plan.distinct_shard_sizes()),
      options.reducer.compresses());
}

bool StepSums::any_read_failed() const {
  for (int rank = 0; rank < ranks_; ++rank)
    if (exchange_.rank_values_of(rank)[kReadFailed] != 0) return true;
  return false;
}

void StepSums::for_own_parts(int thread, FunctionRef<void(Range)> then) const {
  for (const Range& own : own_) {
    const Range share = part_of(own.size(), thread, pool_.size(), 1024);
    if (share.size() > 0) then({own.first + share.first, own.first + share.last});
  }
}

}  // namespace lockstep

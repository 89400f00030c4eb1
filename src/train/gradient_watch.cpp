// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/gradient_watch.h"

#include <algorithm>
#include <bit>

#include "core/trace.h"
#include "core/vector_clones.h"
#include "train/step_sums.h"
#include "train/trainer_options.h"

namespace lockstep {

namespace {

constexpr std::int32_t kInfinity = 0x7F800000;              // bits of a float
constexpr std::int64_t kPoolCount = std::int64_t{1} << 18;  // below this count one thread is faster

/// True: the bits of a number, without its sign, are above `most`.
LOCKSTEP_VECTOR_CLONES bool any_above(const float* values, std::int64_t count, std::int32_t most) {
  std::int32_t signs = 0;
  for (std::int64_t i = 0; i < count; ++i)
    signs |= most - (std::bit_cast<std::int32_t>(values[i]) & 0x7FFFFFFF);
  return signs < 0;
}

}  // namespace

GradientState worst_of(const float* values, std::int64_t count, bool only_nan) {
  const std::int32_t most = only_nan ? kInfinity : std::bit_cast<std::int32_t>(kMostGradient) - 1;
  if (!any_above(values, count, most)) return GradientState::good;
  return only_nan || !are_finite(values, count) ? GradientState::not_finite : GradientState::large;
}

bool are_finite(const float* values, std::int64_t count) { return !any_above(values, count, kInfinity - 1); }

std::unique_ptr<GradientWatch> GradientWatch::create(const ExecutorContext& context, StepSums& sums,
                                                     const TrainerOptions& options) {
  if (!context.device.is_host() || options.servers || options.clip.clips_norm()) return nullptr;
  return std::unique_ptr<GradientWatch>(new GradientWatch(context, sums, options.clip.clips()));
}

GradientWatch::GradientWatch(const ExecutorContext& context, StepSums& sums, bool only_nan)
    : context_(context),
      sums_(sums),
      only_nan_(only_nan),
      of_thread_(static_cast<std::size_t>(context.pool.size())) {}

void GradientWatch::look() {
  const Traced traced("update", "look at the gradients");
  const GradientState state = std::max(look_at_dense(), look_at_rows());
  sums_.exchange().rank_values()[StepSums::kGradientState] = static_cast<double>(state);
}

GradientState GradientWatch::look_at_dense() {
  const float* const gradients = sums_.gradients();
  if (sums_.ownership() == nullptr) {
    const Range share =
        part_of(context_.variables.dense_elements(), context_.sync.rank(), context_.sync.size(), 1024);
    if (share.size() < kPoolCount) return worst_of(gradients + share.first, share.size(), only_nan_);
  }
  std::ranges::fill(of_thread_, GradientState::good);
  context_.pool.run([&](int thread) {
    GradientState& worst = of_thread_[static_cast<std::size_t>(thread)];
    const auto look_at = [&](Range part) {
      worst = std::max(worst, worst_of(gradients + part.first, part.size(), only_nan_));
    };
    if (sums_.ownership() != nullptr) return sums_.for_own_parts(thread, look_at);
    const Range share =
        part_of(context_.variables.dense_elements(), context_.sync.rank(), context_.sync.size(), 1024);
    const Range own = part_of(share.size(), thread, context_.pool.size(), 1024);
    look_at({share.first + own.first, share.first + own.last});
  });
  return std::ranges::max(of_thread_);
}

/// Every rank has the rows of all.
GradientState GradientWatch::look_at_rows() const {
  GradientState worst = GradientState::good;
  for (const VariableId id : context_.variables.sparse()) {
    const Variable& table = context_.variables[id];
    const SparseRows& rows = sums_.sparse()->total_on_device(table.sparse_index);
    const std::int64_t width = table.shape.num_elements() / table.shape[0];
    const Range share = part_of(*rows.count, context_.sync.rank(), context_.sync.size());
    worst = std::max(worst, worst_of(rows.values + share.first * width, share.size() * width, only_nan_));
  }
  return worst;
}

GradientState GradientWatch::found() const {
  double worst = 0;
  for (int rank = 0; rank < context_.sync.size(); ++rank)
    worst = std::max(worst, sums_.exchange().rank_values_of(rank)[StepSums::kGradientState]);
  return static_cast<GradientState>(static_cast<int>(worst));
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "session/rank_values.h"

#include <algorithm>

#include "comm/small_sum.h"
#include "core/error.h"
#include "train/step_sums.h"

namespace lockstep {

namespace {

template <typename T>
std::span<T> part(std::span<T> all, RankValues::Slice slice) {
  return all.subspan(static_cast<std::size_t>(StepSums::kRankValues + slice.first),
                     static_cast<std::size_t>(slice.count));
}

}  // namespace

RankValues::Slice RankValues::declare(int count) {
  LOCKSTEP_CHECK(count > 0 && !allocated_, "rank values are declared after begin");
  count_ += count;
  return {count_ - count, count};
}

void RankValues::allocate() {
  allocated_ = true;
  exchange_.set_rank_values(StepSums::kRankValues + count_);  // the trainer's are the first
}

std::span<double> RankValues::mine(Slice slice) { return part(exchange_.rank_values(), slice); }

std::span<const double> RankValues::of_rank(Slice slice, int rank) const {
  return part(exchange_.rank_values_of(rank), slice);
}

double RankValues::largest(Slice slice) const {
  double value = 0;
  for (int rank = 0; rank < ranks_; ++rank) value = std::max(value, of_rank(slice, rank)[0]);
  return value;
}

}  // namespace lockstep

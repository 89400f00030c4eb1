// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/error_feedback.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "comm/tree.h"
#include "core/error.h"
#include "core/range.h"
#include "core/vector_clones.h"

namespace lockstep {

namespace {

constexpr std::int64_t kGrain = 32;  // elements per cache line

/// Rounds x; `left` is what that took away.
inline float rounded(float x, BFloat16& left) {
  const float node = to_float(from_float<BFloat16>(x));
  const float error = x - node;
  left = from_float<BFloat16>(std::fabs(error) <= std::numeric_limits<float>::max() ? error : 0.0F);
  return node;
}

LOCKSTEP_VECTOR_CLONES void round_leaf(float* __restrict values, const BFloat16* __restrict before,
                                       BFloat16* __restrict after, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = rounded(values[i] + to_float(before[i]), after[i]);
}

LOCKSTEP_VECTOR_CLONES void add_floats(float* __restrict into, const float* __restrict from,
                                       const BFloat16* __restrict before, BFloat16* __restrict after,
                                       std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    into[i] = rounded((into[i] + from[i]) + to_float(before[i]), after[i]);
}

LOCKSTEP_VECTOR_CLONES void add_halves(float* __restrict into, const BFloat16* __restrict from,
                                       const BFloat16* __restrict before, BFloat16* __restrict after,
                                       std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    into[i] = rounded((into[i] + to_float(from[i])) + to_float(before[i]), after[i]);
}

/// Zeros of which only the pages that are written take memory.
BFloat16* map_zeros(std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    throw Error(ErrorKind::config,
                fmt::format("no address space of {} bytes for the residuals of the gradients: {}", bytes,
                            std::strerror(errno)),
                "comm.error_feedback", "Raise the limit (ulimit -v), or set comm.error_feedback=false.");
  return static_cast<BFloat16*>(memory);
}

}  // namespace

ErrorFeedback::ErrorFeedback(int leaves, std::int64_t elements)
    : stride_((elements + kGrain - 1) / kGrain * kGrain),
      bytes_(static_cast<std::size_t>(num_nodes(leaves) * std::max(stride_, kGrain)) * sizeof(BFloat16)),
      before_(map_zeros(bytes_)),
      after_(nullptr) {
  try {
    after_ = map_zeros(bytes_);
  } catch (...) {
    ::munmap(before_, bytes_);
    throw;
  }
}

ErrorFeedback::~ErrorFeedback() {
  ::munmap(before_, bytes_);
  ::munmap(after_, bytes_);
}

void ErrorFeedback::add(int node, std::int64_t first, std::int64_t count, float* into, const float* from) {
  add_floats(into, from, before_ + at(node, first), after_ + at(node, first), count);
}

void ErrorFeedback::add(int node, std::int64_t first, std::int64_t count, float* into, const BFloat16* from) {
  add_halves(into, from, before_ + at(node, first), after_ + at(node, first), count);
}

void ErrorFeedback::round(int leaf_node, std::int64_t first, std::int64_t count, float* values) {
  round_leaf(values, before_ + at(leaf_node, first), after_ + at(leaf_node, first), count);
}

void ErrorFeedback::keep() { std::swap(before_, after_); }

void ErrorFeedback::read(int node, Range elements, float* to) const {
  const BFloat16* const from = before_ + at(node, elements.first);
  for (std::int64_t i = 0; i < elements.size(); ++i) to[i] = to_float(from[i]);
}

void ErrorFeedback::write(int node, Range elements, const float* from) {
  BFloat16* const to = before_ + at(node, elements.first);
  for (std::int64_t i = 0; i < elements.size(); ++i) to[i] = from_float<BFloat16>(from[i]);
}

std::vector<NodePart> nodes_inside_ranks(int leaves, int ranks, std::int64_t elements) {
  std::vector<NodePart> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    const Range mine = shards_of_rank(rank, ranks, leaves);
    const CounterPlan merges(leaves, mine);
    for (int i = 0; i < merges.num_leaves(); ++i) {
      parts.push_back({ErrorFeedback::leaf(static_cast<int>(mine.first) + i), {0, elements}, rank});
      for (const TreeStep& step : merges.merges_after(i))
        parts.push_back({ErrorFeedback::inner(step.middle), {0, elements}, rank});
    }
  }
  return parts;
}

}  // namespace lockstep

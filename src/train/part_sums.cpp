// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/part_sums.h"

#include <algorithm>
#include <utility>

#include "core/device.h"
#include "core/error.h"
#include "core/range.h"

namespace lockstep {

namespace {

/// One leaf per part.
TreePlan plan_of(int parts) {
  std::vector<Range> leaves;
  for (int part = 0; part < parts; ++part) leaves.push_back({part, part + 1});
  return TreePlan(parts, leaves);
}

}  // namespace

Buffer PartBuffers::take() {
  if (free_.empty()) return Buffer(cpu_device(), bytes());
  Buffer buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

PartSums::PartSums(int parts, bool all, PartBuffers& buffers, const NodeArithmetic& arithmetic,
                   ThreadPool& pool)
    : all_(all),
      buffers_(buffers),
      arithmetic_(arithmetic),
      pool_(pool),
      plan_(plan_of(parts)),
      slots_(static_cast<std::size_t>(parts)),
      there_(slots_.size()),
      done_(plan_.steps().size()),
      blocked_(slots_.size()) {}

void PartSums::clear() {
  for (Buffer& slot : slots_)
    if (slot.size_bytes() > 0) buffers_.give_back(std::exchange(slot, Buffer()));
  std::ranges::fill(there_, 0);
  std::ranges::fill(done_, 0);
  added_ = 0;
}

void PartSums::add(int part, Buffer gradient) {
  const auto at = static_cast<std::size_t>(part);
  LOCKSTEP_CHECK(at < there_.size() && there_[at] == 0, "part {} of a step for the second time", part);
  there_[at] = 1;
  slots_[at] = std::move(gradient);
  ++added_;
  if (all_) merge(false);
}

void PartSums::close(std::span<const char> kept) {
  for (std::size_t part = 0; part < slots_.size(); ++part)
    if (kept[part] == 0 && there_[part] != 0) buffers_.give_back(std::exchange(slots_[part], Buffer()));
  merge(true);
}

void PartSums::merge(bool absent) {
  std::ranges::fill(blocked_, 0);
  for (std::size_t i = 0; i < done_.size(); ++i) {
    if (done_[i] != 0) continue;
    const auto into = static_cast<std::size_t>(plan_.steps()[i].into);
    const auto from = static_cast<std::size_t>(plan_.steps()[i].from);
    Buffer &left = slots_[into], &right = slots_[from];
    const bool both = left.size_bytes() > 0 && right.size_bytes() > 0;
    if (!absent && (!both || blocked_[into] != 0 || blocked_[from] != 0)) {
      blocked_[into] = blocked_[from] = 1;
      continue;
    }
    done_[i] = 1;
    if (!both) {
      if (right.size_bytes() > 0) left = std::exchange(right, Buffer());
      continue;
    }
    pool_.run([&](int thread) {
      const Range share = part_of(buffers_.elements(), thread, pool_.size(), 1024);
      if (share.size() > 0)
        arithmetic_.add(nullptr, share.size(), PartBuffers::values(left) + share.first,
                        PartBuffers::values(right) + share.first);
    });
    buffers_.give_back(std::exchange(right, Buffer()));
  }
}

const float* PartSums::total() const {
  LOCKSTEP_CHECK(slots_.front().size_bytes() > 0, "a step without parts");
  return PartBuffers::values(slots_.front());
}

}  // namespace lockstep

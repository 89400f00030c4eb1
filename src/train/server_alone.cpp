// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/server_alone.h"

#include <algorithm>

#include "core/device.h"

namespace lockstep {

ServerAlone::ServerAlone(const ServerLayout& layout, const ServerLoop::Options& options,
                         std::int64_t elements, const NodeArithmetic& arithmetic, ThreadPool& pool)
    : layout_(layout),
      options_(options),
      buffers_(elements),
      sums_(layout.parts(), !options.aggregate, buffers_, arithmetic, pool),
      accepted_(static_cast<std::size_t>(layout.parts())),
      losses_(static_cast<std::size_t>(layout.parts() * options.leaf_doubles)) {
  const int versions = options.staleness > 0 ? options.staleness + 1 : 0;
  for (int i = 0; i < versions; ++i) versions_.emplace_back(cpu_device(), buffers_.bytes());
  std::fill_n(accepted_.begin(), options.aggregate.value_or(layout.parts()), 1);
}

std::size_t ServerAlone::memory_bytes() const {
  return (versions_.size() + static_cast<std::size_t>(layout_.parts())) * buffers_.bytes();
}

float* ServerAlone::version(std::int64_t number) {
  return PartBuffers::values(versions_[static_cast<std::size_t>(number) % versions_.size()]);
}

void ServerAlone::put(std::int64_t number, float* values, FunctionRef<void()> changed) {
  std::copy_n(version(number), buffers_.elements(), values);
  changed();
}

void ServerAlone::run(ServerRound round, float* values, FunctionRef<void()> changed,
                      FunctionRef<PartGradient(const PartTicket&)> compute,
                      FunctionRef<void(const ServerLoop::Sum&)> update) {
  if (!versions_.empty()) std::copy_n(values, buffers_.elements(), version(round.first));
  for (std::int64_t step = round.first; step < round.last; ++step) {
    const std::int64_t older = std::max(round.first, step - options_.staleness);
    if (older != step) put(older, values, changed);
    sums_.clear();
    std::ranges::fill(losses_, 0.0);
    for (std::size_t part = 0; part < accepted_.size() && accepted_[part] != 0; ++part) {
      const PartGradient computed =
          compute({.step = step, .part = static_cast<std::int64_t>(part), .version = older});
      Buffer gradient = buffers_.take();
      std::copy_n(computed.gradient, buffers_.elements(), PartBuffers::values(gradient));
      sums_.add(static_cast<int>(part), std::move(gradient));
      std::ranges::copy(computed.losses,
                        losses_.begin() + static_cast<std::ptrdiff_t>(part) * options_.leaf_doubles);
    }
    if (options_.aggregate) sums_.close(accepted_);
    if (older != step) put(step, values, changed);
    update({step, sums_.total(), accepted_});
    if (step + 1 == round.last) break;  // the last update comes after the meeting
    changed();
    if (!versions_.empty()) std::copy_n(values, buffers_.elements(), version(step + 1));
  }
}

}  // namespace lockstep

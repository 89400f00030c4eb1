// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/noise_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "comm/flight_recorder.h"
#include "core/device_copy.h"
#include "core/range.h"
#include "core/trace.h"

namespace lockstep {

namespace {

/// The parts of an operation's gradients between alignment gaps.
std::vector<Range> parts_of(const GradientRange& gradients) {
  std::vector<Range> parts;
  std::int64_t next = gradients.range.first;
  for (const Range& gap : gradients.gaps) {
    if (gap.first > next) parts.push_back({next, gap.first});
    next = gap.last;
  }
  if (gradients.range.last > next) parts.push_back({next, gradients.range.last});
  return parts;
}

}  // namespace

NoiseScale::NoiseScale(const ExecutorContext& context, std::span<const GradientRange> gradients, Range own,
                       double decay)
    : context_(context), own_(own), decay_(decay), of_operation_(gradients.size()) {
  std::vector<ClipBlock> relative, flat;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    of_operation_[i].first = std::ssize(relative);
    for (const Range& part : parts_of(gradients[i]))
      for (std::int64_t first = part.first; first < part.last; first += kClipBlock) {
        const auto count = static_cast<std::int32_t>(std::min(kClipBlock, part.last - first));
        relative.push_back({first - gradients[i].range.first, count, 0});
        flat.push_back({first, count, 0});
      }
    of_operation_[i].count = std::ssize(relative) - of_operation_[i].first;
  }
  num_blocks_ = std::ssize(relative);
  const auto places = static_cast<std::size_t>(own.size() + 1);
  relative_ = on_device(context.device, relative);
  flat_ = on_device(context.device, flat);
  variable_ =
      on_device(context.device, std::vector<ClipVariable>{{.first_block = 0, .num_blocks = num_blocks_}});
  sums_ = Buffer(context.device, places * static_cast<std::size_t>(num_blocks_) * sizeof(double));
  squares_ = Buffer::pinned(context.device, places * sizeof(double));
  totals_ = Buffer::pinned(context.device, places * sizeof(ClipTotals));
}

void NoiseScale::add(const Lane& lane, int shard, int operation, const float* gradients) {
  const Blocks& blocks = of_operation_[static_cast<std::size_t>(operation)];
  if (blocks.count == 0) return;
  context_.kernels.clip.square_blocks(
      lane, blocks.count, relative_.as<ClipBlock>().data() + blocks.first, gradients,
      sums_.as<double>().data() + (shard - own_.first) * num_blocks_ + blocks.first);
}

void NoiseScale::finish(const float* summed) {
  const Traced traced("backward", "gradient noise scale");
  double* const sums = sums_.as<double>().data();
  const auto sum_of = [&](const Lane& lane, std::int64_t place) {
    context_.kernels.clip.factors(lane, 1, variable_.as<ClipVariable>().data(), sums + place * num_blocks_,
                                  {}, squares_.as<double>().data() + place, nullptr,
                                  totals_.as<ClipTotals>().data() + place);
  };
  context_.pool.run([&](int t) {
    const Lane& lane = context_.lanes[static_cast<std::size_t>(t)];
    const Range part = part_of(num_blocks_, t, context_.pool.size());
    if (part.size() > 0)
      context_.kernels.clip.square_blocks(lane, part.size(), flat_.as<ClipBlock>().data() + part.first,
                                          summed, sums + own_.size() * num_blocks_ + part.first);
    const Range shards = part_of(own_.size(), t, context_.pool.size());
    for (std::int64_t place = shards.first; place < shards.last; ++place) sum_of(lane, place);
  });
  sum_of(context_.lanes.front(), own_.size());
  if (context_.device.is_host()) return;
  const RecordedCall waiting("the GPU's gradients, for the noise scale", 0);
  context_.device.synchronize(context_.stream());
}

void NoiseScale::fill(int shard, double size, double* leaf) const {
  leaf[0] = size > 0 ? squares_.as<double>()[static_cast<std::size_t>(shard - own_.first)] / size : 0;
  leaf[1] = size > 0 ? 1 : 0;
  leaf[2] = size;
}

void NoiseScale::update(const double* totals, double samples, double loss_scale) {
  const double shards = totals[1];
  const double scale = loss_scale * loss_scale;
  const double parts = totals[2] * totals[0] / scale;
  const double whole = squares_.as<double>()[static_cast<std::size_t>(own_.size())] / scale;
  if (shards < 2 || !std::isfinite(parts) || !std::isfinite(whole)) return;
  const double gradient = (shards * whole - parts) / (shards - 1);
  const double noise = samples * (parts - whole) / (shards - 1);
  averages_[0] = decay_ * averages_[0] + (1 - decay_) * gradient;
  averages_[1] = decay_ * averages_[1] + (1 - decay_) * noise;
}

std::optional<double> NoiseScale::value() const {
  if (!(averages_[0] > 0) || !(averages_[1] > 0)) return std::nullopt;
  return averages_[1] / averages_[0];
}

std::string noise_scale_warning(const Graph::Calls& calls) {
  for (const Graph::Operation& operation : calls.operations)
    if (operation.collective != nullptr && operation.collective->collective_traits().group_size != 1)
      return fmt::format(
          "gradients.noise_scale: {} takes statistics of several microshards, whose gradients then depend on "
          "each other: the noise scale is too large, or has no value. batch_norm: {{group: 1}} avoids that",
          operation.layer->name());
  return {};
}

}  // namespace lockstep

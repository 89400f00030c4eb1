// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "optim/trust_rule.h"

#include <algorithm>

#include "core/device_copy.h"
#include "core/range.h"
#include "core/sizes.h"
#include "core/trace.h"

namespace lockstep {

TrustRule::TrustRule(RuleOptions&& options, const TrustOptions& trust,
                     std::initializer_list<std::string_view> slots)
    : UpdateRule(std::move(options.learning_rate)),
      names_(slots),
      factor_(scheduled(std::move(options.weight_decay))),
      options_(trust) {}

std::string TrustRule::formula() const {
  const bool decays = !factor_.is_zero();
  std::string text = rule_text(decays ? factor_.text() : "");
  if (!options_.adapt_vectors)
    text += decays && !options_.decay_vectors ? "; vectors: without decay, with rate lr"
                                              : "; vectors: with rate lr";
  else if (decays && !options_.decay_vectors)
    text += "; vectors: without decay";
  return text;
}

void TrustRule::prepare(std::int64_t step) {
  decay_ = factor_.at(step);
  begin(step, learning_rate(step));
}

void TrustRule::set_variables(Device& device, const VariableStore& variables,
                              std::span<const VariableId> own) {
  std::vector<ClipVariable> entries;
  for (const VariableId id : own) {
    const Variable& variable = variables[id];
    LOCKSTEP_CHECK(variable.sparse_index < 0, "{} has a sparse gradient", variable.name);
    const bool is_vector = variable.shape.rank() < 2;
    const std::int64_t count = variable.shape.num_elements();
    ClipVariable entry{.first_block = static_cast<std::int64_t>(blocks_on_host_.size())};
    for (std::int64_t first = 0; first < count; first += kClipBlock)
      blocks_on_host_.push_back({variable.offset + first,
                                 static_cast<std::int32_t>(std::min(kClipBlock, count - first)),
                                 static_cast<std::int32_t>(own_.size())});
    entry.num_blocks = static_cast<std::int64_t>(blocks_on_host_.size()) - entry.first_block;
    entries.push_back(entry);
    own_.push_back({variable.offset, variable.offset + count, options_.adapt_vectors || !is_vector,
                    options_.decay_vectors || !is_vector});
  }
  blocks_ = on_device(device, blocks_on_host_);
  variables_ = on_device(device, entries);
  for (int i = 0; i < 2; ++i) {
    block_sums_[i] = Buffer(device, blocks_on_host_.size() * sizeof(double));
    squares_[i] = Buffer(device, own_.size() * sizeof(double));
  }
  unused_factors_ = Buffer(device, own_.size() * sizeof(double));
  unused_totals_ = Buffer::pinned(device, sizeof(ClipTotals));
  if (!device.is_host() && has_direction())
    allocate_for("directions of the optimizer", [&] {
      directions_ = Buffer(device, static_cast<std::size_t>(variables.trainable_elements()) * sizeof(float));
    });
}

RuleSlots TrustRule::slots_from(std::int64_t first) const {
  RuleSlots slots;
  const std::int64_t place = place_in_slot(first);
  for (std::size_t i = 0; i < names_.size(); ++i) slots.at[i] = slot(i) + place;
  return slots;
}

/// The thread's blocks, one after the other while they are in the cache.
void TrustRule::measure_blocks(const UpdateContext& context, int thread, const float* gradients) {
  const Lane& lane = context.lanes[static_cast<std::size_t>(thread)];
  const float* const w = context.variables.trainable_address();
  alignas(64) float direction_of_block[kClipBlock];
  const auto measure_block = [&](std::int64_t b) {
    const ClipBlock& block = blocks_on_host_[static_cast<std::size_t>(b)];
    const auto sum = [&](const ClipBlock& of, const float* x, Buffer& sums) {
      context.kernels.clip.square_blocks(lane, 1, &of, x, sums.as<double>().data() + b);
    };
    if (has_direction()) {
      const Own& variable = own_[static_cast<std::size_t>(block.variable)];
      RuleSlots slots = slots_from(block.first);
      slots.at[names_.size()] = direction_of_block;
      context.kernels.update.apply(lane, direction_of(variable), block.count,
                                   context.variables.trainable_address() + block.first,
                                   gradients + block.first, slots);
      sum({0, block.count, block.variable}, direction_of_block, block_sums_[1]);
    } else {
      sum(block, gradients, block_sums_[1]);
    }
    sum(block, w, block_sums_[0]);
  };
  parts_.for_share(static_cast<std::int64_t>(blocks_on_host_.size()), thread, context.pool.size(),
                   [&](Range own) {
                     for (std::int64_t b = own.first; b < own.last; ++b) measure_block(b);
                   });
}

void TrustRule::measure_on_device(const UpdateContext& context, const float* gradients) {
  const Lane& lane = context.lanes.front();
  const auto num_blocks = static_cast<std::int64_t>(blocks_on_host_.size());
  const ClipBlock* const blocks = blocks_.as<ClipBlock>().data();
  float* const w = context.variables.trainable_address();
  const float* measured = gradients;
  if (directions_.size_bytes() > 0) {
    float* const directions = directions_.as<float>().data();
    for (const Own& variable : own_) {
      RuleSlots slots = slots_from(variable.first);
      slots.at[names_.size()] = directions + variable.first;
      context.kernels.update.apply(lane, direction_of(variable), variable.last - variable.first,
                                   w + variable.first, gradients + variable.first, slots);
    }
    measured = directions;
  }
  context.kernels.clip.square_blocks(lane, num_blocks, blocks, w, block_sums_[0].as<double>().data());
  context.kernels.clip.square_blocks(lane, num_blocks, blocks, measured, block_sums_[1].as<double>().data());
}

void TrustRule::share_measures(const GradientParts& parts) { parts_ = BlockParts(blocks_on_host_, parts); }

void TrustRule::measure(const UpdateContext& context, const float* gradients) {
  const Traced traced("update", "norms of variables");
  if (context.device.is_host())
    context.pool.run([&](int thread) { measure_blocks(context, thread, gradients); });
  else
    measure_on_device(context, gradients);
  for (Buffer& sums : block_sums_) parts_.exchange(sums.as<double>().data());
  for (int i = 0; i < 2; ++i)
    context.kernels.clip.factors(context.lanes.front(), static_cast<std::int64_t>(own_.size()),
                                 variables_.as<ClipVariable>().data(), block_sums_[i].as<double>().data(),
                                 ClipNorms{}, squares_[i].as<double>().data(),
                                 unused_factors_.as<double>().data(), unused_totals_.as<ClipTotals>().data());
  measured_ = step();
}

void TrustRule::update(const KernelTable& kernels, const Lane& lane, const VariableStore& variables,
                       const float* gradients, Range range) const {
  LOCKSTEP_CHECK(measured_ == step(), "measure() comes before update()");
  const double *const w2 = static_cast<const double*>(squares_[0].data()), *const x2 =
                                                                               static_cast<const double*>(
                                                                                   squares_[1].data());
  auto at = std::ranges::upper_bound(own_, range.first, {}, &Own::last);
  for (; at != own_.end() && at->first < range.last; ++at) {
    const std::int64_t first = std::max(at->first, range.first), last = std::min(at->last, range.last);
    const auto number = at - own_.begin();
    const RuleStep now = move(at->adapts ? Norms{w2 + number, x2 + number} : Norms{}, decay_of(*at),
                              counts().class_at(at->first));
    kernels.update.apply(lane, now, last - first, variables.trainable_address() + first,
                         gradients + (first - range.first), slots_from(first));
  }
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/loss_stage.h"

#include <algorithm>

#include "core/range.h"
#include "train/executor_context.h"

namespace lockstep {

LossStage::LossStage(const ExecutorContext& context, bool training, Range own, int slots,
                     std::int64_t most_samples)
    : heads_(context.heads),
      kernels_(context.kernels),
      training_(training),
      own_(own),
      divisors_(static_cast<std::size_t>(heads_.size())) {
  const auto places = static_cast<std::size_t>(own.size() * heads_.size());
  sums_ = Buffer::pinned(context.device, places * sizeof(LossSums));
  counts_.resize(places);
  results_.resize(places);
  for (int slot = 0; slot < slots && context.device.is_host(); ++slot)
    labels_.emplace_back(cpu_device(),
                         static_cast<std::size_t>(most_samples * heads_.label_words()) * sizeof(float));
  if (training && heads_.counts_labels())
    agreed_ = std::make_unique<SmallSum>(context.sync, context.shards, 0, heads_.size());
}

void LossStage::begin(std::int64_t count) {
  std::ranges::fill(sums_.as<LossSums>(), LossSums{});
  std::ranges::fill(counts_, LossCounts{});
  for (int i = 0; i < heads_.size(); ++i)
    divisors_[static_cast<std::size_t>(i)] =
        static_cast<double>(count * heads_[i].loss->terms(heads_[i].shape));
}

LabelBlock LossStage::arrange(int slot, const Labels& labels, std::int64_t n) {
  return heads_.arrange(labels, n, labels_[static_cast<std::size_t>(slot)].data());
}

void LossStage::count(int shard, const LabelBlock& labels, std::int64_t n) {
  heads_.count(labels, n, std::span(counts_).subspan(first(shard), static_cast<std::size_t>(heads_.size())));
}

void LossStage::set_counts(int shard, std::span<const LossCounts> counts) {
  std::ranges::copy(counts, counts_.begin() + static_cast<std::ptrdiff_t>(first(shard)));
}

void LossStage::agree() {
  for (int shard = static_cast<int>(own_.first); shard < own_.last; ++shard)
    for (int i = 0; i < heads_.size(); ++i)
      agreed_->leaf(shard)[i] = counts_[first(shard) + static_cast<std::size_t>(i)].divisor;
  agreed_->reduce("counts of labels");
  std::copy_n(agreed_->total(0), heads_.size(), divisors_.begin());
}

void LossStage::run(const Lane& lane, int shard, std::int64_t n, const LabelBlock& labels,
                    std::span<const Place> places) {
  for (int i = 0; i < heads_.size(); ++i) {
    const Head& head = heads_[i];
    const Place& place = places[static_cast<std::size_t>(i)];
    if (labels.data == nullptr && head.loss->takes_labels()) continue;
    const double divisor = divisors_[static_cast<std::size_t>(i)];
    const float scale = divisor > 0 ? static_cast<float>(scale_ * head.weight / divisor) : 0.0F;
    head.loss->run(kernels_, lane, n, head.shape, place.outputs, heads_.labels_of(i, labels, n), scale,
                   training_ ? place.d_outputs : Data(),
                   &sums_.as<LossSums>()[first(shard) + static_cast<std::size_t>(i)]);
    if (training_ && place.into)
      kernels_.elementwise.accumulate(lane, n * head.shape.num_elements(), place.into, place.d_outputs);
  }
}

std::span<const HeadSums> LossStage::results(int shard) {
  const std::span<HeadSums> found =
      std::span(results_).subspan(first(shard), static_cast<std::size_t>(heads_.size()));
  for (std::size_t i = 0; i < found.size(); ++i)
    found[i] = {sums_.as<LossSums>()[first(shard) + i], counts_[first(shard) + i]};
  return found;
}

}  // namespace lockstep

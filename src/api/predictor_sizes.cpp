// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "api/predictor_sizes.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/philox.h"
#include "model/memory_plan.h"
#include "run/setup/stored_model.h"
#include "train/forward_pass.h"

namespace lockstep {

namespace {

constexpr std::int64_t kSizes[] = {64, 16, 4, 1};
constexpr std::size_t kMostActivationBytes = std::size_t{32} << 20;
constexpr std::int64_t kFewestTried = 64;  ///< samples
constexpr double kMostTriedFlops =
    4e9;  ///< of all samples of a size; a larger net tries those of a microshard
constexpr std::uint32_t kPurposeOfTrial = 0x7072;

/// Samples of a microshard of a full batch, as `lockstep predict` has them.
std::int64_t microshard_of(const StoredModel& stored) {
  return (stored.config.train.batch_size + stored.shards - 1) / stored.shards;
}

/// Sizes that might be used beside those of a microshard.
std::vector<std::int64_t> candidates(const StoredModel& stored, std::int64_t most) {
  std::vector<std::int64_t> sizes;
  const Graph::Calls calls = stored.model.graph->calls(false);
  const auto fits = [&](std::int64_t size) {
    return MemoryPlan(calls, false, size).total_bytes() <= kMostActivationBytes;
  };
  if (most > 0) sizes.push_back(most);
  for (const std::int64_t size : kSizes)
    if (most > 0 ? size < most : size == 1 || fits(size)) sizes.push_back(size);
  return sizes;
}

/// What heads compute of some samples.
class Trial {
 public:
  Trial(const StoredModel& stored, std::int64_t samples)
      : stored_(stored), values_(stored.model.graph->features().num_elements()) {
    samples_.resize(static_cast<std::size_t>(samples * values_));
    for (std::size_t i = 0; i < samples_.size(); ++i) {
      const auto place = static_cast<std::uint32_t>(i);
      samples_[i] = philox_uniform(philox_words(1, kPurposeOfTrial, 0, place / 4, 0)[place % 4]);
    }
  }

  /// Of the first samples by passes of this size, by head.
  std::vector<std::vector<float>> outputs(const PreparedNet& net, std::int64_t size,
                                          std::int64_t samples) const {
    ForwardPass pass(net, 0);
    std::vector<std::vector<float>> heads(static_cast<std::size_t>(stored_.model.heads->size()));
    for (std::int64_t done = 0; done < samples; done += size) {
      const std::int64_t count = std::min(size, samples - done);
      std::fill_n(std::copy_n(samples_.begin() + done * values_, count * values_, pass.features()),
                  (size - count) * values_, 0.0F);
      pass.run(size);
      for (std::size_t head = 0; head < heads.size(); ++head) {
        const int number = static_cast<int>(head);
        const float* const from = pass.outputs(number);
        heads[head].insert(heads[head].end(), from,
                           from + count * (*stored_.model.heads)[number].shape.num_elements());
      }
    }
    return heads;
  }

 private:
  const StoredModel& stored_;
  std::int64_t values_;
  std::vector<float> samples_;
};

/// `few`: of fewer samples than `many`, or of as many.
bool same_bits(const std::vector<std::vector<float>>& few, const std::vector<std::vector<float>>& many) {
  for (std::size_t head = 0; head < few.size(); ++head)
    if (std::memcmp(few[head].data(), many[head].data(), few[head].size() * sizeof(float)) != 0) return false;
  return true;
}

}  // namespace

std::vector<std::int64_t> prediction_sizes(const StoredModel& stored, std::int64_t most) {
  LOCKSTEP_REQUIRE(most >= 0, ErrorKind::usage, "PredictorOptions::batch_size is {}", most);
  const std::int64_t microshard = microshard_of(stored);
  std::vector<std::int64_t> sizes = candidates(stored, most);
  std::vector<std::int64_t> prepared = sizes;
  prepared.push_back(microshard);
  std::ranges::sort(prepared);
  prepared.erase(std::unique(prepared.begin(), prepared.end()), prepared.end());
  const Graph graph = graph_of(stored);
  const PreparedNet net({graph, *stored.model.variables, *stored.model.heads, static_cast<int>(stored.shards),
                         stored.config.general.seed},
                        prepared, 1);
  const std::int64_t largest = std::max(kFewestTried, prepared.back());
  const std::int64_t many = (largest + microshard - 1) / microshard * microshard;
  const bool is_cheap = graph.flops_per_sample() * static_cast<double>(many) <= kMostTriedFlops;
  const std::int64_t tried = is_cheap ? many : microshard;
  const Trial trial(stored, tried);
  const std::vector<std::vector<float>> reference = trial.outputs(net, microshard, tried);
  std::erase_if(sizes, [&](std::int64_t size) {
    if (size == microshard) return false;
    if (size > tried) return true;
    const std::int64_t samples =
        is_cheap ? tried : std::max<std::int64_t>(size, std::min<std::int64_t>(tried, 4));
    return !same_bits(trial.outputs(net, size, samples), reference);
  });
  if (sizes.empty()) sizes.push_back(microshard);
  std::ranges::sort(sizes);
  return sizes;
}

std::int64_t pass_size(std::span<const std::int64_t> sizes, std::int64_t left) {
  const auto above = std::ranges::upper_bound(sizes, left);
  return above == sizes.begin() ? sizes.front() : *(above - 1);
}

}  // namespace lockstep

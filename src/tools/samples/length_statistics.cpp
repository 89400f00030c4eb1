// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/samples/length_statistics.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "core/range.h"
#include "data/length_buckets.h"

namespace lockstep {

namespace {

constexpr std::int64_t kBar = 30;
constexpr std::int64_t kBins = 16;
constexpr std::int64_t kBatches = 200;

double percent(std::int64_t part, std::int64_t all) {
  return all == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(all);
}

/// Of the steps up to the longest sequence of each microshard, those beyond a sequence's end.
double padding_percent(const StepPlan& plan, const LengthBuckets& buckets) {
  std::int64_t computed = 0, used = 0;
  std::vector<std::int64_t> samples;
  Cursor cursor;
  for (std::int64_t i = 0; i < kBatches && cursor.epoch == 0; ++i, cursor = plan.advance(cursor)) {
    const Batch batch = plan.batch(cursor);
    for (std::int64_t shard = 0; shard < plan.spec().shards; ++shard) {
      const Range range = plan.shard_range(batch.count, shard);
      samples.resize(static_cast<std::size_t>(range.size()));
      plan.samples(batch.epoch, batch.first + range.first, samples);
      std::int64_t longest = 0;
      for (const std::int64_t sample : samples) {
        longest = std::max(longest, buckets.length(sample));
        used += buckets.length(sample);
      }
      computed += longest * range.size();
    }
  }
  return percent(computed - used, computed);
}

}  // namespace

std::vector<std::string> length_lines(const ReaderDataset& data, std::span<const std::int64_t> samples) {
  if (data.sequence() == nullptr || samples.empty()) return {};
  const std::int64_t steps = data.stored_shape()[0];
  const std::int64_t width = (steps + kBins) / kBins;  // of a bin; lengths are 0 to steps
  std::vector<std::int64_t> counts(static_cast<std::size_t>(steps / width + 1));
  std::int64_t shortest = steps, longest = 0, sum = 0;
  for (const std::int64_t sample : samples) {
    const std::int64_t length = data.sequence_length(sample);
    shortest = std::min(shortest, length);
    longest = std::max(longest, length);
    sum += length;
    ++counts[static_cast<std::size_t>(length / width)];
  }
  const std::int64_t all = std::ssize(samples), most = *std::ranges::max_element(counts);
  std::vector<std::string> lines{fmt::format(
      "lengths         {} to {} steps, mean {:.4g}; {:.0f} % of {} steps are padding", shortest, longest,
      static_cast<double>(sum) / static_cast<double>(all), percent(all * steps - sum, all * steps), steps)};
  for (std::int64_t bin = shortest / width; bin <= longest / width; ++bin) {
    const std::int64_t count = counts[static_cast<std::size_t>(bin)];
    const std::int64_t last = std::min((bin + 1) * width - 1, steps);
    lines.push_back(fmt::format(
        "  {:<14}{:>8} {:>5.1f} %  {}",
        last > bin * width ? fmt::format("{} to {}", bin * width, last) : fmt::format("{}", last), count,
        percent(count, all), std::string(static_cast<std::size_t>((count * kBar + most - 1) / most), '#')));
  }
  return lines;
}

std::string bucket_line(const StepPlan& plan) {
  const LengthBuckets& buckets = *plan.spec().buckets;
  std::vector<std::string> texts;
  for (const LengthBuckets::Bucket& bucket : buckets.buckets())
    texts.push_back(fmt::format("{} of {} to {}", bucket.samples, bucket.shortest, bucket.longest));
  StepPlanSpec spec = plan.spec();
  spec.buckets = nullptr;
  return fmt::format(
      "{} steps; up to the longest of a microshard {:.0f} % are padding, without buckets {:.0f} %",
      fmt::join(texts, ", "), padding_percent(plan, buckets), padding_percent(StepPlan(spec), buckets));
}

}  // namespace lockstep

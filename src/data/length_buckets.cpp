// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/length_buckets.h"

#include <algorithm>
#include <limits>

#include "core/philox.h"
#include "data/uniform_order.h"

namespace lockstep {

namespace {

// Seeds determine the order of samples: do not change them.
constexpr std::uint32_t kBatchPurpose = philox_purpose("length_buckets/batch");
constexpr std::uint32_t kRestPurpose = philox_purpose("length_buckets/rest");
constexpr std::uint32_t kSamplePurpose = philox_purpose("length_buckets/sample");
/// Mixes the number of a bucket into a purpose.
constexpr std::uint32_t kOddFactor = 0x9E3779B9U;

std::vector<std::int32_t> numbers_of(std::span<const std::int32_t> lengths,
                                     std::span<const std::int64_t> bounds) {
  std::vector<std::int32_t> numbers;
  numbers.reserve(lengths.size());
  for (const std::int32_t length : lengths)
    numbers.push_back(
        static_cast<std::int32_t>(std::ranges::lower_bound(bounds, std::int64_t{length}) - bounds.begin()));
  return numbers;
}

}  // namespace

LengthBuckets::LengthBuckets(std::vector<std::int32_t> lengths, std::span<const std::int64_t> bounds,
                             const SampleChoice* choice, std::int64_t repeat)
    : lengths_(std::move(lengths)), lists_(numbers_of(lengths_, bounds), choice), repeat_(repeat) {
  first_.push_back(0);
  for (std::size_t i = 0; i < lists_.size(); ++i)
    first_.push_back(first_.back() + std::ssize(lists_.samples(i)));
}

std::int64_t LengthBuckets::sample_at(std::uint64_t seed, std::int64_t epoch, std::int64_t batch_size,
                                      std::int64_t position) const {
  const auto step = static_cast<std::uint32_t>(epoch);
  const std::int64_t whole = size() / batch_size, rest = size() % batch_size;
  const std::int64_t batch = position / batch_size, in_batch = position % batch_size;
  // The buckets' places are cut into batches: slots. The slot of the smaller batch is random; the epoch ends
  // with it, while the others come in a random order.
  const std::int64_t small = rest == 0 ? whole : UniformOrder(whole + 1).at({seed, kRestPurpose, step}, 0);
  std::int64_t place = small * batch_size + in_batch;
  if (batch < whole) {
    const std::int64_t slot = UniformOrder(whole).at({seed, kBatchPurpose, step}, batch);
    place = slot * batch_size + in_batch + (slot >= small ? rest : 0);
  }
  const auto next = std::ranges::upper_bound(first_, place / repeat_);
  const auto bucket = static_cast<std::size_t>(next - first_.begin()) - 1;
  const std::span<const std::uint32_t> samples = lists_.samples(bucket);
  const std::int64_t n = std::ssize(samples), in_bucket = place - places_of(first_[bucket]);
  const std::int64_t pass = epoch * repeat_ + in_bucket / n;
  const UniformOrder::Key key{seed, kSamplePurpose + static_cast<std::uint32_t>(bucket) * kOddFactor,
                              static_cast<std::uint32_t>(pass)};
  return samples[static_cast<std::size_t>(UniformOrder(n).at(key, in_bucket % n))];
}

std::vector<LengthBuckets::Bucket> LengthBuckets::buckets() const {
  std::vector<Bucket> all;
  for (std::size_t i = 0; i < lists_.size(); ++i) {
    Bucket bucket{std::numeric_limits<std::int64_t>::max(), 0, std::ssize(lists_.samples(i))};
    for (const std::uint32_t sample : lists_.samples(i)) {
      bucket.shortest = std::min(bucket.shortest, length(sample));
      bucket.longest = std::max(bucket.longest, length(sample));
    }
    all.push_back(bucket);
  }
  return all;
}

}  // namespace lockstep

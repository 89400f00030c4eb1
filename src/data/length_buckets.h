// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Epochs whose batches have samples of similar length. Samples are sorted into buckets of lengths; within a
// bucket every pass has an order of its own. The buckets, one after the other, are cut into batches, of which
// a few have samples of two neighbouring buckets, and the batches of an epoch come in a random order. If the
// samples do not fill the last batch, which ones are in it is random, too.
//
// The order of an epoch is arithmetic over one table: four bytes per sample. It depends on the batch size.
//
// Buckets choose the order only. Shorter shapes are not planned: a graph for each bucket's length would need
// an arena and a set of primitives for each, while lstm and gru already skip what follows the longest
// sequence of a microshard, with the same bits, and that is where the time of long sequences goes. The one
// smaller batch of an epoch has a random place in the sequence of buckets, so no length is dropped more often
// than others. Every rank reads the training set once for the lengths. Of several inputs with sequences the
// first one decides.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/class_lists.h"

namespace lockstep {

class LengthBuckets {
 public:
  /// `lengths`: of each sample; `bounds`: the greatest length of each bucket but the last, ascending. Of the
  /// samples that `choice` takes (null: all), `repeat` times in an epoch.
  LengthBuckets(std::vector<std::int32_t> lengths, std::span<const std::int64_t> bounds,
                const SampleChoice* choice, std::int64_t repeat);

  /// The places of an epoch.
  std::int64_t size() const { return places_of(lists_.num_samples()); }
  /// The sample at a position of an epoch, below size(). Threads may call it concurrently.
  std::int64_t sample_at(std::uint64_t seed, std::int64_t epoch, std::int64_t batch_size,
                         std::int64_t position) const;

  struct Bucket {
    std::int64_t shortest, longest, samples;
  };
  /// The buckets that have samples, by length.
  std::vector<Bucket> buckets() const;
  /// The length of a sample.
  std::int64_t length(std::int64_t sample) const { return lengths_[static_cast<std::size_t>(sample)]; }

 private:
  std::int64_t places_of(std::int64_t samples) const { return samples * repeat_; }

  std::vector<std::int32_t> lengths_;
  ClassLists lists_;
  std::vector<std::int64_t> first_;  ///< sample of each bucket in all of them, and the end
  std::int64_t repeat_;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Histograms and moments of arrays that all ranks hold alike (weights, summed gradients), for summaries. An
// array is cut into the pieces of kernels/distribution.h. Ranks share the pieces of large models, threads
// those of a rank; the chief adds them in their order. So the results are exact for the counts, and have the
// same bits on any number of ranks and threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "core/range.h"
#include "train/executor_context.h"

namespace lockstep {

/// A histogram and its moments. `buckets`: kDistributionBuckets counts; valid as long as what measured them.
struct DistributionTotal {
  Distribution moments;
  std::span<const std::uint32_t> buckets;
  std::int64_t not_finite = 0;  ///< numbers that are NaN or infinite; they are in nothing else
  std::int64_t count() const { return moments.finite + not_finite; }
};

/// Adds the next piece's moments.
void add_piece(Distribution& to, const Distribution& piece);

class DistributionMeter {
 public:
  struct Array {
    const float* values;           ///< on the device
    const float* minus = nullptr;  ///< null: none; else the differences values - minus are measured
    std::int64_t count = 0;        ///< at most the declared number
  };

  /// `most`: the largest number of elements of each array. `control` is used if ranks share the work. The
  /// same on all ranks. References outlive the meter.
  DistributionMeter(const ExecutorContext& context, Communicator& control,
                    std::span<const std::int64_t> most);

  /// Waits for the device. All ranks, with the same numbers.
  void measure(std::span<const Array> arrays);
  /// The result of the last measure(). On the chief only.
  DistributionTotal total(std::size_t array) const;

 private:
  /// Pieces [first, last) of all arrays together, of one rank, and the arrays that they are of.
  struct Share {
    Range pieces, arrays;
  };
  Share share_of(int rank) const;
  void measure_pieces(const Lane& lane, std::span<const Array> arrays, Range pieces);
  std::size_t message_bytes(const Share& share) const;
  void send(const Share& mine);
  void receive();

  ExecutorContext context_;
  Communicator& control_;
  std::vector<std::int64_t> first_piece_;  ///< by array, and the number of all
  std::vector<std::int64_t> counts_;       ///< of the last measure()
  bool is_shared_ = false;
  Buffer pieces_, buckets_;  ///< on the device
  std::vector<Distribution> host_pieces_;
  std::vector<std::uint32_t> host_buckets_;
  std::vector<char> message_;
};

}  // namespace lockstep

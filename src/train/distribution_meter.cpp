// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/distribution_meter.h"

#include <algorithm>
#include <cstring>

#include "comm/flight_recorder.h"
#include "core/range.h"
#include "core/thread_pool.h"
#include "core/trace.h"

namespace lockstep {

namespace {

/// The number of elements below which the chief measures alone: the messages would take longer.
constexpr std::int64_t kSharedElements = std::int64_t{1} << 20;
constexpr std::size_t kBucketBytes = kDistributionBuckets * sizeof(std::uint32_t);
constexpr const char* kWhat = "histograms of summaries";

std::int64_t pieces_of(std::int64_t count) { return (count + kDistributionPiece - 1) / kDistributionPiece; }

}  // namespace

void add_piece(Distribution& to, const Distribution& piece) {
  if (piece.finite == 0) return;
  to.least = to.finite == 0 ? piece.least : std::min(to.least, piece.least);
  to.largest = to.finite == 0 ? piece.largest : std::max(to.largest, piece.largest);
  to.sum += piece.sum;
  to.sum_squares += piece.sum_squares;
  to.finite += piece.finite;
  to.zeros += piece.zeros;
  to.beyond += piece.beyond;
}

DistributionMeter::DistributionMeter(const ExecutorContext& context, Communicator& control,
                                     std::span<const std::int64_t> most)
    : context_(context), control_(control), counts_(most.size()) {
  std::int64_t elements = 0;
  first_piece_.push_back(0);
  for (const std::int64_t count : most) {
    elements += count;
    first_piece_.push_back(first_piece_.back() + pieces_of(count));
  }
  is_shared_ = control.size() > 1 && elements >= kSharedElements;
  if (!is_shared_ && control.rank() > 0) return;
  const auto pieces = static_cast<std::size_t>(first_piece_.back());
  pieces_ = Buffer(context.device, pieces * sizeof(Distribution));
  buckets_ = Buffer(context.device, most.size() * kBucketBytes);
  host_pieces_.resize(pieces);
  host_buckets_.resize(most.size() * kDistributionBuckets);
  std::size_t bytes = 0;
  for (int rank = 1; is_shared_ && rank < control.size(); ++rank)
    if (control.rank() == 0)
      bytes += message_bytes(share_of(rank));
    else if (control.rank() == rank)
      bytes = message_bytes(share_of(rank));
  message_.resize(bytes);
}

DistributionMeter::Share DistributionMeter::share_of(int rank) const {
  const Range pieces = is_shared_  ? part_of(first_piece_.back(), rank, control_.size())
                       : rank == 0 ? Range{0, first_piece_.back()}
                                   : Range{0, 0};
  if (pieces.size() == 0) return {pieces, {0, 0}};
  const auto array_of = [&](std::int64_t piece) {
    return std::ranges::upper_bound(first_piece_, piece) - first_piece_.begin() - 1;
  };
  return {pieces, {array_of(pieces.first), array_of(pieces.last - 1) + 1}};
}

void DistributionMeter::measure(std::span<const Array> arrays) {
  for (std::size_t i = 0; i < arrays.size(); ++i) counts_[i] = arrays[i].count;
  const Share mine = share_of(control_.rank());
  if (mine.pieces.size() > 0) {
    const Traced traced("summaries", "histograms");
    Device& device = context_.device;
    device.zero(context_.stream(), buckets_.data(), buckets_.size_bytes());
    if (device.is_host()) {
      const ThreadPool& pool = context_.pool;
      context_.pool.run([&](int t) {
        const Range part = part_of(mine.pieces.size(), t, pool.size());
        measure_pieces(context_.lanes[static_cast<std::size_t>(t)], arrays,
                       {mine.pieces.first + part.first, mine.pieces.first + part.last});
      });
    } else {
      measure_pieces(context_.lanes.front(), arrays, mine.pieces);
    }
    const RecordedCall waiting("the GPU's histograms", 0);
    device.synchronize(context_.stream());
    device.copy_to_host(host_pieces_.data(), pieces_.data(), pieces_.size_bytes());
    device.copy_to_host(host_buckets_.data(), buckets_.data(), buckets_.size_bytes());
  }
  if (!is_shared_) return;
  if (control_.rank() == 0)
    receive();
  else
    send(mine);
}

void DistributionMeter::measure_pieces(const Lane& lane, std::span<const Array> arrays, Range pieces) {
  auto array = static_cast<std::size_t>(std::ranges::upper_bound(first_piece_, pieces.first) -
                                        first_piece_.begin() - 1);
  for (std::int64_t piece = pieces.first; piece < pieces.last; ++array) {
    const std::int64_t end = std::min(first_piece_[array + 1], pieces.last);
    const std::int64_t first = (piece - first_piece_[array]) * kDistributionPiece,
                       last = std::min((end - first_piece_[array]) * kDistributionPiece, arrays[array].count);
    if (first < last)
      context_.kernels.distribution.measure(
          lane, last - first, arrays[array].values + first,
          arrays[array].minus == nullptr ? nullptr : arrays[array].minus + first, {},
          buckets_.as<std::uint32_t>().data() + array * kDistributionBuckets,
          pieces_.as<Distribution>().data() + piece);
    piece = end;
  }
}

std::size_t DistributionMeter::message_bytes(const Share& share) const {
  return static_cast<std::size_t>(share.pieces.size()) * sizeof(Distribution) +
         static_cast<std::size_t>(share.arrays.size()) * kBucketBytes;
}

void DistributionMeter::send(const Share& mine) {
  char* to = message_.data();
  const std::size_t pieces = static_cast<std::size_t>(mine.pieces.size()) * sizeof(Distribution);
  if (!message_.empty()) {
    std::memcpy(to, host_pieces_.data() + mine.pieces.first, pieces);
    std::memcpy(to + pieces, host_buckets_.data() + mine.arrays.first * kDistributionBuckets,
                message_.size() - pieces);
  }
  const OutMessage out{message_.data(), message_.size(), 0};
  control_.exchange_many(std::span(&out, message_.empty() ? 0 : 1), {}, kWhat);
}

void DistributionMeter::receive() {
  std::vector<InMessage> in;
  char* at = message_.data();
  for (int rank = 1; rank < control_.size(); ++rank) {
    const std::size_t bytes = message_bytes(share_of(rank));
    if (bytes > 0) in.push_back({at, bytes, rank});
    at += bytes;
  }
  control_.exchange_many({}, in, kWhat);
  const char* from = message_.data();
  for (int rank = 1; rank < control_.size(); ++rank) {
    const Share share = share_of(rank);
    const std::size_t pieces = static_cast<std::size_t>(share.pieces.size()) * sizeof(Distribution);
    if (pieces == 0) continue;
    std::memcpy(host_pieces_.data() + share.pieces.first, from, pieces);
    from += pieces;
    for (std::int64_t array = share.arrays.first; array < share.arrays.last; ++array) {
      std::uint32_t added[kDistributionBuckets];
      std::memcpy(added, from, kBucketBytes);
      from += kBucketBytes;
      std::uint32_t* const to = host_buckets_.data() + array * kDistributionBuckets;
      for (int b = 0; b < kDistributionBuckets; ++b) to[b] += added[b];
    }
  }
}

DistributionTotal DistributionMeter::total(std::size_t array) const {
  DistributionTotal total;
  for (std::int64_t p = 0; p < pieces_of(counts_[array]); ++p)
    add_piece(total.moments, host_pieces_[static_cast<std::size_t>(first_piece_[array] + p)]);
  total.not_finite = counts_[array] - total.moments.finite;
  total.buckets = std::span(host_buckets_).subspan(array * kDistributionBuckets, kDistributionBuckets);
  return total;
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/tree_reduction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "comm/vector_add.h"
#include "core/error.h"

namespace lockstep {

namespace {

constexpr std::int64_t kGrain = 16;  // elements per cache line; ranges are cut at its multiples
constexpr std::int64_t kPoolCount = std::int64_t{1} << 16;  // below this count one thread is faster
constexpr std::size_t kScratchLimit = std::size_t{32} << 20;
constexpr int kRanksAtOnce = 4;  // general algorithm: peers per exchange
constexpr int kMostLevels = 31;

bool is_balanced(int ranks, int shards) {
  if (!std::has_single_bit(static_cast<unsigned>(ranks)) || shards < ranks) return false;
  for (int width = 1; width <= ranks; width *= 2)
    for (int rank = 0; rank < ranks; rank += width) {
      const auto first = static_cast<int>(shards_of_rank(rank, ranks, shards).first);
      const auto last = static_cast<int>(shards_of_rank(rank + width - 1, ranks, shards).last);
      if (!is_tree_node(first, last, shards)) return false;
    }
  return true;
}

}  // namespace

TreeReduction::TreeReduction(Communicator& communicator, ThreadPool* pool, int shards,
                             std::int64_t largest_count, std::size_t piece_bytes)
    : TreeReduction(communicator, pool, shards, largest_count, piece_bytes, {cpu_device(), nullptr, {}}) {}

TreeReduction::TreeReduction(Communicator& communicator, int shards, std::int64_t largest_count,
                             std::size_t piece_bytes, Place place)
    : TreeReduction(communicator, nullptr, shards, largest_count, piece_bytes, std::move(place)) {
  LOCKSTEP_CHECK(place_.add, "values on {} need an add function", place_.device.name());
}

TreeReduction::TreeReduction(Communicator& communicator, ThreadPool* pool, int shards,
                             std::int64_t largest_count, std::size_t piece_bytes, Place place)
    : communicator_(communicator),
      pool_(pool != nullptr && pool->size() > 1 ? pool : nullptr),
      place_(std::move(place)),
      plan_(shards, shards_of_all_ranks(communicator.size(), shards)),
      balanced_(is_balanced(communicator.size(), shards)),
      piece_bytes_(piece_bytes) {
  LOCKSTEP_CHECK(piece_bytes >= 1024 && piece_bytes % 64 == 0, "pieces of {} bytes", piece_bytes);
  const int ranks = communicator.size();
  if (ranks == 1 || largest_count == 0) return;
  if (balanced_) {
    const std::size_t ring = Communicator::kRingPieces * piece_bytes;
    const std::size_t small = static_cast<std::size_t>(std::min(largest_count, kSmallCount)) * sizeof(float);
    scratch_ = Buffer(place_.device, std::max(ring, small));
    return;
  }
  // The scratch memory holds the other ranks' partials of one chunk. The block size is chosen so that a chunk
  // is about one piece.
  const int own = plan_.first_input(communicator.rank() + 1) - plan_.first_input(communicator.rank());
  const std::size_t foreign = plan_.inputs().size() - static_cast<std::size_t>(own);
  const std::size_t most = std::max<std::size_t>(kScratchLimit / plan_.inputs().size(), 4096);
  const std::int64_t whole = (largest_count + ranks - 1) / ranks;
  chunk_count_ =
      std::min<std::int64_t>(static_cast<std::int64_t>(std::min(piece_bytes, most) / sizeof(float)), whole);
  chunk_count_ = (chunk_count_ + kGrain - 1) / kGrain * kGrain;
  scratch_ = Buffer(place_.device, foreign * static_cast<std::size_t>(chunk_count_) * sizeof(float));
  out_.reserve(static_cast<std::size_t>(kRanksAtOnce) * static_cast<std::size_t>(own));
  in_.reserve(plan_.inputs().size());
}

void TreeReduction::sum(std::span<float* const> partials, float* result, std::int64_t offset,
                        std::int64_t count, const char* what) {
  if (communicator_.size() == 1 || count == 0) return;
  if (balanced_) return sum_balanced(result + offset, count, what);
  const std::int64_t block = chunk_count_ * communicator_.size();
  for (std::int64_t done = 0; done < count; done += block)
    sum_block(partials, result, offset + done, std::min(block, count - done), what);
}

void TreeReduction::add(float* into, const float* from, std::int64_t count) {
  if (place_.add) return place_.add(into, from, count);
  if (pool_ == nullptr || count < kPoolCount) return vector_add(into, from, count);
  pool_->run([&](int thread) {
    const Range part = part_of(count, thread, pool_->size(), kGrain);
    vector_add(into + part.first, from + part.first, part.size());
  });
}

// The size of the lower half of a range, a multiple of a cache line.
std::int64_t TreeReduction::halved(std::int64_t count) const {
  return std::min(count, (count / 2 + kGrain - 1) / kGrain * kGrain);
}

void TreeReduction::sum_balanced(float* data, std::int64_t count, const char* what) {
  if (count <= kSmallCount) return sum_balanced_small(data, count, what);
  const int rank = communicator_.rank(), ranks = communicator_.size();
  std::array<Range, kMostLevels> levels;
  Range mine{0, count};
  int level = 0;
  for (int distance = 1; distance < ranks; distance *= 2, ++level) {
    const std::int64_t middle = mine.first + halved(mine.size());
    const bool lower = (rank & distance) == 0;
    const Range keep = lower ? Range{mine.first, middle} : Range{middle, mine.last};
    const Range give = lower ? Range{middle, mine.last} : Range{mine.first, middle};
    communicator_.exchange_pieces(
        data + give.first, static_cast<std::size_t>(give.size()) * sizeof(float),
        static_cast<std::size_t>(keep.size()) * sizeof(float), rank ^ distance, scratch_.data(), piece_bytes_,
        [&](std::size_t at, const void* piece, std::size_t bytes) {
          add(data + keep.first + at / sizeof(float), static_cast<const float*>(piece),
              static_cast<std::int64_t>(bytes / sizeof(float)));
        },
        what);
    levels[static_cast<std::size_t>(level)] = mine;
    mine = keep;
  }
  for (int distance = ranks / 2; distance >= 1; distance /= 2) {
    const Range whole = levels[static_cast<std::size_t>(--level)];
    const Range other =
        mine.first == whole.first ? Range{mine.last, whole.last} : Range{whole.first, mine.first};
    communicator_.exchange(data + mine.first, static_cast<std::size_t>(mine.size()) * sizeof(float),
                           rank ^ distance, data + other.first,
                           static_cast<std::size_t>(other.size()) * sizeof(float), rank ^ distance, what);
    mine = whole;
  }
}

void TreeReduction::sum_balanced_small(float* data, std::int64_t count, const char* what) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  for (int distance = 1; distance < communicator_.size(); distance *= 2) {
    const int peer = communicator_.rank() ^ distance;
    communicator_.exchange(data, bytes, peer, scratch_.data(), bytes, peer, what);
    add(data, static_cast<const float*>(scratch_.data()), count);
  }
}

void TreeReduction::sum_block(std::span<float* const> partials, float* result, std::int64_t offset,
                              std::int64_t count, const char* what) {
  const int rank = communicator_.rank(), ranks = communicator_.size();
  const auto chunk = [&](int owner) { return part_of(count, owner, ranks, kGrain); };
  const Range mine = chunk(rank);
  const auto bytes = [](const Range& range) {
    return static_cast<std::size_t>(range.size()) * sizeof(float);
  };
  const int own_first = plan_.first_input(rank), own_last = plan_.first_input(rank + 1);
  // The address of a partial of this rank's chunk: its own partials in place, the others' in the scratch
  // memory.
  const auto place = [&](int input) {
    if (own_first <= input && input < own_last)
      return partials[static_cast<std::size_t>(input - own_first)] + offset + mine.first;
    const int slot = input < own_first ? input : input - (own_last - own_first);
    return static_cast<float*>(scratch_.data()) + slot * chunk_count_;
  };

  for (int first = 1; first < ranks; first += kRanksAtOnce) {
    out_.clear();
    in_.clear();
    for (int distance = first; distance < std::min(first + kRanksAtOnce, ranks); ++distance) {
      const int to = (rank + distance) % ranks, from = (rank - distance + ranks) % ranks;
      for (float* partial : partials)
        out_.push_back({partial + offset + chunk(to).first, bytes(chunk(to)), to});
      for (int input = plan_.first_input(from); input < plan_.first_input(from + 1); ++input)
        in_.push_back({place(input), bytes(mine), from});
    }
    communicator_.exchange_many(out_, in_, what);
  }
  tree_combine(plan_, [&](int into, int from) { add(place(into), place(from), mine.size()); });
  float* const total = result + offset;
  if (const float* sum = place(plan_.output_slot(0)); sum != total + mine.first && mine.size() > 0)
    place_.device.copy(place_.stream, total + mine.first, sum, bytes(mine));

  for (int first = 1; first < ranks; first += kRanksAtOnce) {
    out_.clear();
    in_.clear();
    for (int distance = first; distance < std::min(first + kRanksAtOnce, ranks); ++distance) {
      const int to = (rank + distance) % ranks, from = (rank - distance + ranks) % ranks;
      out_.push_back({total + mine.first, bytes(mine), to});
      in_.push_back({total + chunk(from).first, bytes(chunk(from)), from});
    }
    communicator_.exchange_many(out_, in_, what);
  }
}

std::int64_t TreeReduction::bytes_sent(std::int64_t count) const {
  const int rank = communicator_.rank(), ranks = communicator_.size();
  if (ranks == 1) return 0;
  if (balanced_ && count <= kSmallCount)
    return count * std::int64_t{sizeof(float)} * std::countr_zero(static_cast<unsigned>(ranks));
  if (balanced_) return 2 * count * std::int64_t{sizeof(float)} / ranks * (ranks - 1);
  const std::int64_t own = plan_.first_input(rank + 1) - plan_.first_input(rank);
  return (own + 1) * count * std::int64_t{sizeof(float)} / ranks * (ranks - 1);
}

}  // namespace lockstep

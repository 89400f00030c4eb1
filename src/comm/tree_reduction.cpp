// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/tree_reduction.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"
#include "core/range.h"

namespace lockstep {

namespace {

constexpr std::int64_t kPoolCount = std::int64_t{1} << 16;  // below this count one thread is faster
constexpr std::size_t kScratchLimit = std::size_t{32} << 20;
constexpr int kRanksAtOnce = 4;  // general algorithm: peers per exchange
constexpr std::int64_t kNarrowCount = std::int64_t{1}
                                      << 19;  // 1 MB of 16-bit numbers: they stay in the cache

std::int64_t largest_part(std::span<const std::int64_t> limits) {
  std::int64_t most = 0;
  for (std::size_t i = 1; i < limits.size(); ++i) most = std::max(most, limits[i] - limits[i - 1]);
  return most;
}

std::size_t bytes_of(const Range& range) { return static_cast<std::size_t>(range.size()) * sizeof(float); }
std::size_t narrow_bytes_of(const Range& range) {
  return static_cast<std::size_t>(range.size()) * sizeof(BFloat16);
}
/// Of half of the largest sum, which is the most that a balanced exchange sends: a multiple of 64.
std::size_t whole_piece_bytes(std::int64_t largest_count) {
  const auto half = static_cast<std::size_t>(largest_count / 2 + TreeReduction::kGrain) * sizeof(float);
  return std::max<std::size_t>(1024, (half + 63) / 64 * 64);
}
/// The next `count` elements of a range of which `done` are done, or what is left.
Range block_of(const Range& range, std::int64_t done, std::int64_t count) {
  const std::int64_t first = std::min(range.first + done, range.last);
  return {first, std::min(first + count, range.last)};
}

}  // namespace

TreeReduction::TreeReduction(Communicator& communicator, ThreadPool* pool, int shards,
                             std::int64_t largest_count, std::size_t piece_bytes, bool compress)
    : TreeReduction(communicator, pool, shards, largest_count, piece_bytes, compress,
                    {cpu_device(), nullptr, host_arithmetic()}) {}

// A stream runs exchanges and additions one after the other, so pieces would overlap nothing, and each costs
// calls: whole parts are exchanged at once.
TreeReduction::TreeReduction(Communicator& communicator, int shards, std::int64_t largest_count,
                             bool compress, Place place)
    : TreeReduction(communicator, nullptr, shards, largest_count, whole_piece_bytes(largest_count), compress,
                    place) {}

TreeReduction::TreeReduction(Communicator& communicator, ThreadPool* pool, int shards,
                             std::int64_t largest_count, std::size_t piece_bytes, bool compress, Place place)
    : communicator_(communicator),
      pool_(pool != nullptr && pool->size() > 1 ? pool : nullptr),
      place_(place),
      plan_(shards, shards_of_all_ranks(communicator.size(), shards)),
      shards_(shards),
      compress_(compress),
      balanced_(is_balanced(communicator.size(), shards)),
      piece_bytes_(piece_bytes) {
  LOCKSTEP_CHECK(piece_bytes >= 1024 && piece_bytes % 64 == 0, "pieces of {} bytes", piece_bytes);
  const int ranks = communicator.size();
  if (ranks == 1 || largest_count == 0) return;
  if (balanced_) {
    levels_.reserve(static_cast<std::size_t>(std::countr_zero(static_cast<unsigned>(ranks))));
    std::size_t ring = Communicator::kRingPieces * piece_bytes;
    if (!place_.device.is_host()) ring = piece_bytes;  // a whole part is one piece
    const std::size_t small = static_cast<std::size_t>(std::min(largest_count, kSmallCount)) * sizeof(float);
    scratch_ = Buffer(place_.device, std::max(ring, small));
    if (!compress_) return;
    // Of a larger sum, at most half is sent at a time.
    const std::int64_t most = place_.device.is_host() ? kNarrowCount : largest_count;
    narrow_count_ =
        std::min(most, std::max(std::min(largest_count, kSmallCount), largest_count / 2 + kGrain));
    const std::size_t bytes = static_cast<std::size_t>(narrow_count_) * sizeof(BFloat16);
    narrow_out_ = Buffer(place_.device, bytes);
    narrow_in_ = Buffer(place_.device, bytes);
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
  if (!compress_) return;
  int largest_own = 1;  // partials of one rank
  for (int rank = 0; rank < ranks; ++rank)
    largest_own = std::max(largest_own, plan_.first_input(rank + 1) - plan_.first_input(rank));
  const auto chunk_bytes = static_cast<std::size_t>(chunk_count_) * kRanksAtOnce * sizeof(BFloat16);
  narrow_out_ = Buffer(place_.device, static_cast<std::size_t>(std::max(own, 1)) * chunk_bytes);
  narrow_in_ = Buffer(place_.device, static_cast<std::size_t>(largest_own) * chunk_bytes);
}

void TreeReduction::sum(std::span<float* const> partials, float* result, std::int64_t offset,
                        std::int64_t count, const char* what) {
  const int ranks = communicator_.size();
  if (ranks == 1 || count == 0) return;
  // With residuals only one rank adds an element of a node.
  if (balanced_ && count <= kSmallCount && feedback_ == nullptr)
    return sum_balanced_small(result + offset, count, what);
  if (balanced_) {
    levels_within(communicator_.rank(), {offset, offset + count}, levels_);
    halve(result, levels_, what);
    return redouble(result, levels_, compress_, what);
  }
  for (std::int64_t done = 0; done < count; done += chunk_count_ * ranks) {
    const auto chunk = [&](int rank) { return chunk_of_sum(rank, offset, count, done); };
    reduce_chunks(partials, result, chunk, what);
    send_chunks(result, chunk, compress_, what);
  }
}

void TreeReduction::reduce(std::span<float* const> partials, float* result,
                           std::span<const std::int64_t> limits, const char* what) {
  const auto ranks = static_cast<std::size_t>(communicator_.size());
  LOCKSTEP_CHECK(limits.size() == ranks + 1, "{} limits for {} ranks", limits.size(), ranks);
  if (ranks == 1) return;
  if (balanced_) {
    levels_between(communicator_.rank(), limits, levels_);
    return halve(result, levels_, what);
  }
  const std::int64_t most = largest_part(limits);
  for (std::int64_t done = 0; done < most; done += chunk_count_)
    reduce_chunks(
        partials, result, [&](int rank) { return chunk_of_part(rank, limits, done); }, what);
}

void TreeReduction::gather(float* data, std::span<const std::int64_t> limits, const char* what) {
  if (communicator_.size() == 1) return;
  if (balanced_) {
    levels_between(communicator_.rank(), limits, levels_);
    return redouble(data, levels_, false, what);
  }
  send_chunks(
      data,
      [&](int rank) {
        return Range{limits[static_cast<std::size_t>(rank)], limits[static_cast<std::size_t>(rank) + 1]};
      },
      false, what);
}

void TreeReduction::in_parts(std::int64_t count, FunctionRef<void(Range)> work) {
  if (pool_ == nullptr || count < kPoolCount) return work({0, count});
  pool_->run([&](int thread) { work(part_of(count, thread, pool_->size(), kGrain)); });
}

void TreeReduction::add(float* into, const float* from, std::int64_t count, const Node& node) {
  in_parts(count, [&](Range part) {
    float* const to = into + part.first;
    if (feedback_ != nullptr)
      feedback_->add(ErrorFeedback::inner(node.middle), node.first + part.first, part.size(), to,
                     from + part.first);
    else if (compress_)
      place_.arithmetic.add_rounded(place_.stream, part.size(), to, from + part.first, node.total);
    else
      place_.arithmetic.add(place_.stream, part.size(), to, from + part.first);
  });
}

void TreeReduction::add(float* into, const BFloat16* from, std::int64_t count, const Node& node) {
  in_parts(count, [&](Range part) {
    float* const to = into + part.first;
    if (feedback_ != nullptr)
      feedback_->add(ErrorFeedback::inner(node.middle), node.first + part.first, part.size(), to,
                     from + part.first);
    else
      place_.arithmetic.add_rounded(place_.stream, part.size(), to, from + part.first, node.total);
  });
}

void TreeReduction::narrow(const float* from, BFloat16* to, std::int64_t count) {
  in_parts(count, [&](Range part) {
    place_.arithmetic.narrow(place_.stream, part.size(), from + part.first, to + part.first);
  });
}

void TreeReduction::widen(const BFloat16* from, float* to, std::int64_t count) {
  in_parts(count, [&](Range part) {
    place_.arithmetic.widen(place_.stream, part.size(), from + part.first, to + part.first);
  });
}

/// Recursive halving: leaves the sum of the last level's part.
void TreeReduction::halve(float* data, const Levels& levels, const char* what) {
  if (compress_) {
    for (const Level& level : levels) halve_compressed(data, level, &level == &levels.back(), what);
    return;
  }
  for (const Level& level : levels)
    communicator_.exchange_pieces(
        data + level.give.first, bytes_of(level.give), bytes_of(level.keep), level.peer, scratch_.data(),
        piece_bytes_,
        [&](std::size_t at, const void* piece, std::size_t bytes) {
          add(data + level.keep.first + at / sizeof(float), static_cast<const float*>(piece),
              static_cast<std::int64_t>(bytes / sizeof(float)), {});
        },
        what);
}

/// The same with 16 bits, in blocks: both ranks have the same number of them.
void TreeReduction::halve_compressed(float* data, const Level& level, bool last, const char* what) {
  const std::int64_t most = std::max(level.give.size(), level.keep.size());
  for (std::int64_t done = 0; done < most; done += narrow_count_) {
    const Range give = block_of(level.give, done, narrow_count_),
                keep = block_of(level.keep, done, narrow_count_);
    narrow(data + give.first, out_at(0), give.size());
    communicator_.exchange_pieces(
        out_at(0), narrow_bytes_of(give), narrow_bytes_of(keep), level.peer, scratch_.data(), piece_bytes_,
        [&](std::size_t at, const void* piece, std::size_t bytes) {
          const std::int64_t first = keep.first + static_cast<std::int64_t>(at / sizeof(BFloat16));
          add(data + first, static_cast<const BFloat16*>(piece),
              static_cast<std::int64_t>(bytes / sizeof(BFloat16)), {last, level.middle, first});
        },
        what);
  }
}

/// Recursive doubling: distributes the parts that halve() has left.
void TreeReduction::redouble(float* data, const Levels& levels, bool compressed, const char* what) {
  for (auto level = levels.rbegin(); level != levels.rend(); ++level)
    if (compressed)
      redouble_compressed(data, *level, what);
    else
      communicator_.exchange(data + level->keep.first, bytes_of(level->keep), level->peer,
                             data + level->give.first, bytes_of(level->give), level->peer, what);
}

void TreeReduction::redouble_compressed(float* data, const Level& level, const char* what) {
  const std::int64_t most = std::max(level.give.size(), level.keep.size());
  for (std::int64_t done = 0; done < most; done += narrow_count_) {
    const Range give = block_of(level.give, done, narrow_count_),
                keep = block_of(level.keep, done, narrow_count_);
    narrow(data + keep.first, out_at(0), keep.size());
    communicator_.exchange(out_at(0), narrow_bytes_of(keep), level.peer, in_at(0), narrow_bytes_of(give),
                           level.peer, what);
    widen(in_at(0), data + give.first, give.size());
  }
}

void TreeReduction::sum_balanced_small(float* data, std::int64_t count, const char* what) {
  const Range all{0, count};
  for (int distance = 1; distance < communicator_.size(); distance *= 2) {
    const int peer = communicator_.rank() ^ distance;
    if (compress_) {
      narrow(data, out_at(0), count);
      communicator_.exchange(out_at(0), narrow_bytes_of(all), peer, in_at(0), narrow_bytes_of(all), peer,
                             what);
      add(data, in_at(0), count, {.total = 2 * distance == communicator_.size(), .middle = 0, .first = 0});
    } else {
      communicator_.exchange(data, bytes_of(all), peer, scratch_.data(), bytes_of(all), peer, what);
      add(data, static_cast<const float*>(scratch_.data()), count, {});
    }
  }
}

/// Each rank receives all partials of its chunk, at most chunk_count_ elements, and adds them along the tree.
void TreeReduction::reduce_chunks(std::span<float* const> partials, float* result, ChunkOf chunk,
                                  const char* what) {
  const int rank = communicator_.rank(), ranks = communicator_.size();
  const Range mine = chunk(rank);
  const int own_first = plan_.first_input(rank), own_last = plan_.first_input(rank + 1);
  // The address of a partial of this rank's chunk: its own partials in place, the others' in the scratch
  // memory.
  const auto place = [&](int input) {
    if (own_first <= input && input < own_last)
      return partials[static_cast<std::size_t>(input - own_first)] + mine.first;
    const int slot = input < own_first ? input : input - (own_last - own_first);
    return static_cast<float*>(scratch_.data()) + slot * chunk_count_;
  };
  for (int first = 1; first < ranks; first += kRanksAtOnce)
    exchange_partials(partials, chunk, place, first, what);
  for (const TreeStep& step : plan_.steps())
    add(place(step.into), place(step.from), mine.size(), {step.root, step.middle, mine.first});
  float* const sum = place(plan_.output_slot(0));
  if (compress_ && plan_.steps().empty()) place_.arithmetic.round(place_.stream, mine.size(), sum);
  if (sum != result + mine.first && mine.size() > 0)
    place_.device.copy(place_.stream, result + mine.first, sum, bytes_of(mine));
}

/// Exchanges partials with the ranks at distances `first` to first + kRanksAtOnce - 1.
void TreeReduction::exchange_partials(std::span<float* const> partials, ChunkOf chunk,
                                      FunctionRef<float*(int input)> place, int first, const char* what) {
  const int rank = communicator_.rank(), ranks = communicator_.size();
  const int last = std::min(first + kRanksAtOnce, ranks);
  const Range mine = chunk(rank);
  const auto peer_from = [&](int distance) { return (rank - distance + ranks) % ranks; };
  out_.clear();
  in_.clear();
  std::int64_t sent = 0, received = 0;  // slots of the 16-bit buffers
  for (int distance = first; distance < last; ++distance) {
    const int to = (rank + distance) % ranks, from = peer_from(distance);
    for (float* partial : partials) {
      if (compress_) {
        BFloat16* const slot = out_at(chunk_count_ * sent++);
        narrow(partial + chunk(to).first, slot, chunk(to).size());
        out_.push_back({slot, narrow_bytes_of(chunk(to)), to});
      } else {
        out_.push_back({partial + chunk(to).first, bytes_of(chunk(to)), to});
      }
    }
    for (int input = plan_.first_input(from); input < plan_.first_input(from + 1); ++input)
      if (compress_)
        in_.push_back({in_at(chunk_count_ * received++), narrow_bytes_of(mine), from});
      else
        in_.push_back({place(input), bytes_of(mine), from});
  }
  communicator_.exchange_many(out_, in_, what);
  if (!compress_) return;
  received = 0;
  for (int distance = first; distance < last; ++distance)
    for (int input = plan_.first_input(peer_from(distance));
         input < plan_.first_input(peer_from(distance) + 1); ++input)
      widen(in_at(chunk_count_ * received++), place(input), mine.size());
}

/// Sends this rank's chunk to all ranks. `compressed` chunks have at most chunk_count_ elements.
void TreeReduction::send_chunks(float* data, ChunkOf chunk, bool compressed, const char* what) {
  const int rank = communicator_.rank(), ranks = communicator_.size();
  const Range mine = chunk(rank);
  if (compressed) narrow(data + mine.first, out_at(0), mine.size());
  for (int first = 1; first < ranks; first += kRanksAtOnce) {
    const int last = std::min(first + kRanksAtOnce, ranks);
    out_.clear();
    in_.clear();
    for (int distance = first; distance < last; ++distance) {
      const int to = (rank + distance) % ranks, from = (rank - distance + ranks) % ranks;
      if (compressed) {
        out_.push_back({out_at(0), narrow_bytes_of(mine), to});
        in_.push_back({in_at(chunk_count_ * (distance - first)), narrow_bytes_of(chunk(from)), from});
      } else {
        out_.push_back({data + mine.first, bytes_of(mine), to});
        in_.push_back({data + chunk(from).first, bytes_of(chunk(from)), from});
      }
    }
    communicator_.exchange_many(out_, in_, what);
    for (int distance = first; compressed && distance < last; ++distance) {
      const Range theirs = chunk((rank - distance + ranks) % ranks);
      widen(in_at(chunk_count_ * (distance - first)), data + theirs.first, theirs.size());
    }
  }
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "comm/sparse_sum.h"

#include <algorithm>
#include <cstring>

#include "comm/node_arithmetic.h"
#include "core/device.h"
#include "core/error.h"
#include "core/range.h"

namespace lockstep {

namespace {

constexpr std::int64_t kGrain = 16;  ///< floats: gathered pieces begin at multiples of 64 bytes

std::int64_t rounded(std::int64_t count) { return (count + kGrain - 1) / kGrain * kGrain; }

Buffer numbers(std::int64_t count, Device* device = nullptr) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  return device == nullptr ? Buffer(cpu_device(), bytes) : Buffer::pinned(*device, bytes);
}

std::uint64_t key(std::int32_t row, std::size_t input) {
  return static_cast<std::uint64_t>(row) << 32U | static_cast<std::uint64_t>(input);
}
std::int32_t row_of(std::uint64_t key) { return static_cast<std::int32_t>(key >> 32U); }
std::size_t input_of(std::uint64_t key) { return static_cast<std::size_t>(key & 0xffffffffU); }

}  // namespace

SparseSum::SparseSum(Communicator& communicator, ThreadPool& pool, int shards, std::int64_t table_rows,
                     std::int64_t width, std::int64_t leaf_rows, bool compress, Device* device)
    : communicator_(communicator),
      pool_(pool),
      shards_(shards),
      table_rows_(table_rows),
      width_(width),
      leaf_rows_(std::min(leaf_rows, table_rows)),
      compress_(compress),
      own_(shards_of_rank(communicator.rank(), communicator.size(), shards)) {
  LOCKSTEP_CHECK(device == nullptr || communicator.size() > 1,
                 "a device needs this sum only with more than one rank");
  LOCKSTEP_CHECK(device == nullptr || !compress, "rows on {} are not rounded", device->name());
  for (const Range& shards_of : shards_of_all_ranks(communicator.size(), shards)) {
    all_nodes_.push_back(
        maximal_subtrees(static_cast<int>(shards_of.first), static_cast<int>(shards_of.last), shards));
    most_nodes_ = std::max(most_nodes_, all_nodes_.back().size());
  }
  own_nodes_ = all_nodes_[static_cast<std::size_t>(communicator.rank())];
  const std::int64_t shards_here = own_.size(),
                     most_here = (shards + communicator.size() - 1) / communicator.size();
  const std::int64_t own_rows = rounded(most_here * leaf_rows_), ranks = communicator.size(),
                     total_rows = std::min(table_rows_, shards * leaf_rows_);
  leaf_counts_ = numbers(shards_here + 1, device);
  if (device == nullptr) leaf_memory_ = numbers(shards_here * rounded(leaf_rows_) * (1 + width_));
  auto* at = leaf_memory_.as<float>().data();
  for (std::int64_t i = 0; i < (device == nullptr ? shards_here : 0); ++i) {
    leaves_.push_back({leaf_counts_.as<std::int32_t>().data() + i, reinterpret_cast<std::int32_t*>(at),
                       at + rounded(leaf_rows_)});
    at += rounded(leaf_rows_) * (1 + width_);
  }
  total_memory_ = numbers(rounded(total_rows) * (1 + width_), device);
  at = total_memory_.as<float>().data();
  total_ = {leaf_counts_.as<std::int32_t>().data() + shards_here, reinterpret_cast<std::int32_t*>(at),
            at + rounded(total_rows)};
  if (ranks > 1) {
    own_rows_ = numbers(own_rows, device);
    own_values_ = numbers(own_rows * width_, device);
    all_rows_ = numbers(ranks * own_rows);
    all_values_ = numbers(ranks * own_rows * width_);
    const auto halves = static_cast<std::size_t>(compress ? own_rows * width_ : 0) * sizeof(BFloat16);
    own_narrow_ = Buffer(cpu_device(), halves);
    all_narrow_ = Buffer(cpu_device(), static_cast<std::size_t>(ranks) * halves);
  }
  own_counts_.resize(most_nodes_);
  all_counts_.resize(most_nodes_ * static_cast<std::size_t>(ranks));
  std::size_t nodes = static_cast<std::size_t>(shards_here);
  for (const auto& of_rank : all_nodes_) nodes += of_rank.size();
  inputs_.reserve(nodes);
  run_ends_.reserve(nodes + 1);
  cursors_.reserve(nodes);
  const auto entries = static_cast<std::size_t>(shards * leaf_rows_);
  keys_.resize(entries);
  other_keys_.resize(entries);
  addresses_.resize(entries);
  starts_.resize(entries + 1);
  clear();
}

void SparseSum::clear() {
  for (const SparseRows& leaf : leaves_) *leaf.count = 0;
  *total_.count = 0;
}

std::size_t SparseSum::memory_bytes() const {
  std::size_t sum = 0;
  for (const Buffer* buffer : {&leaf_memory_, &own_rows_, &own_values_, &all_rows_, &all_values_,
                               &total_memory_, &own_narrow_, &all_narrow_})
    sum += buffer->size_bytes();
  return sum + keys_.size() * (2 * sizeof(std::uint64_t) + sizeof(float*) + sizeof(std::int64_t));
}

// The rows of each input ascend: merges these runs pairwise.
void SparseSum::sort_entries(std::span<const Input> inputs) {
  run_ends_.clear();
  run_ends_.push_back(0);
  std::int64_t entries = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::int64_t k = 0; k < inputs[i].count; ++k)
      keys_[static_cast<std::size_t>(entries + k)] = key(inputs[i].rows[k], i);
    entries += inputs[i].count;
    run_ends_.push_back(entries);
  }
  while (run_ends_.size() > 2) {
    std::size_t kept = 1;
    for (std::size_t run = 1; run < run_ends_.size(); run += 2) {
      const std::int64_t first = run_ends_[run - 1], middle = run_ends_[run],
                         last = run + 1 < run_ends_.size() ? run_ends_[run + 1] : middle;
      std::merge(keys_.begin() + first, keys_.begin() + middle, keys_.begin() + middle, keys_.begin() + last,
                 other_keys_.begin() + first);
      run_ends_[kept++] = last;
    }
    run_ends_.resize(kept);
    keys_.swap(other_keys_);
  }
}

// Sums the entries [begin, end) of one row, all inside `node`, in the order of the tree without its absent
// leaves.
float* SparseSum::sum_row(std::span<const Input> inputs, std::int64_t begin, std::int64_t end,
                          Subtree node) const {
  if (end - begin == 1) return addresses_[static_cast<std::size_t>(begin)];
  const int middle = node.first + tree_left_size(node.size());
  std::int64_t cut = begin;
  while (cut < end && inputs[input_of(keys_[static_cast<std::size_t>(cut)])].node.first < middle) ++cut;
  const Subtree left{node.first, middle}, right{middle, node.last};
  if (cut == begin) return sum_row(inputs, begin, end, right);
  if (cut == end) return sum_row(inputs, begin, end, left);
  float* const sum = sum_row(inputs, begin, cut, left);
  const float* const other = sum_row(inputs, cut, end, right);
  if (compress_)
    host_arithmetic().add_rounded(nullptr, width_, sum, other, false);
  else
    host_arithmetic().add(nullptr, width_, sum, other);
  return sum;
}

void SparseSum::combine(std::span<const Input> inputs, Subtree node, const SparseRows& out) {
  sort_entries(inputs);
  const std::int64_t entries = run_ends_.back();
  cursors_.assign(inputs.size(), 0);
  std::int64_t unique = 0;
  for (std::int64_t e = 0; e < entries; ++e) {
    const std::uint64_t entry = keys_[static_cast<std::size_t>(e)];
    // The tree has no place for a row that occurs twice in one microshard.
    LOCKSTEP_CHECK(e == 0 || keys_[static_cast<std::size_t>(e - 1)] != entry, "row {} twice", row_of(entry));
    const std::size_t input = input_of(entry);
    addresses_[static_cast<std::size_t>(e)] = inputs[input].values + width_ * cursors_[input]++;
    if (unique > 0 && out.rows[unique - 1] == row_of(entry)) continue;
    out.rows[unique] = row_of(entry);
    starts_[static_cast<std::size_t>(unique++)] = e;
  }
  starts_[static_cast<std::size_t>(unique)] = entries;
  *out.count = static_cast<std::int32_t>(unique);
  pool_.run([&](int thread) {
    const Range part = part_of(unique, thread, pool_.size());
    for (std::int64_t u = part.first; u < part.last; ++u) {
      float* const row = out.values + u * width_;
      std::memcpy(row,
                  sum_row(inputs, starts_[static_cast<std::size_t>(u)],
                          starts_[static_cast<std::size_t>(u + 1)], node),
                  static_cast<std::size_t>(width_) * sizeof(float));
      if (compress_) host_arithmetic().round(nullptr, width_, row);
    }
  });
}

void SparseSum::reduce(const char* what) {
  auto leaves_in = [&](Subtree node) {
    inputs_.clear();
    for (int shard = node.first; shard < node.last; ++shard) {
      const SparseRows& own = leaf(shard);
      LOCKSTEP_CHECK(*own.count <= leaf_rows_, "{} rows of {}", *own.count, leaf_rows_);
      inputs_.push_back({{shard, shard + 1}, *own.count, own.rows, own.values});
    }
    return std::span<const Input>(inputs_);
  };
  if (communicator_.size() == 1) return combine(leaves_in({0, shards_}), {0, shards_}, total_);
  std::int64_t before = 0;
  std::ranges::fill(own_counts_, 0);
  for (std::size_t k = 0; k < own_nodes_.size(); ++k) {
    std::int32_t count = 0;
    combine(leaves_in(own_nodes_[k]), own_nodes_[k],
            {&count, own_rows_.as<std::int32_t>().data() + before,
             own_values_.as<float>().data() + before * width_});
    own_counts_[k] = count;
    before += count;
  }
  reduce_nodes(what);
}

void SparseSum::reduce_nodes(const char* what) {
  exchange(what);
  combine(inputs_, {0, shards_}, total_);
}

/// Of `count` values per rank. Those of nodes are rounded: 16 bits hold them.
void SparseSum::gather_values(std::int64_t count, const char* what) {
  if (!compress_)
    return communicator_.allgather(own_values_.data(), static_cast<std::size_t>(count) * sizeof(float),
                                   all_values_.data(), what);
  auto* const own = own_narrow_.as<BFloat16>().data();
  auto* const all = all_narrow_.as<BFloat16>().data();
  host_arithmetic().narrow(nullptr, count, own_values_.as<float>().data(), own);
  communicator_.allgather(own, static_cast<std::size_t>(count) * sizeof(BFloat16), all, what);
  host_arithmetic().widen(nullptr, count * communicator_.size(), all, all_values_.as<float>().data());
}

void SparseSum::exchange(const char* what) {
  communicator_.allgather(own_counts_.data(), own_counts_.size() * sizeof(std::int64_t), all_counts_.data(),
                          what);
  std::int64_t most = 0;
  const auto counts_of = [&](int rank) {
    return std::span(all_counts_).subspan(static_cast<std::size_t>(rank) * most_nodes_, most_nodes_);
  };
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    std::int64_t sum = 0;
    for (const std::int64_t count : counts_of(rank)) sum += count;
    most = std::max(most, sum);
  }
  most = rounded(most);
  communicator_.allgather(own_rows_.data(), static_cast<std::size_t>(most) * sizeof(std::int32_t),
                          all_rows_.data(), what);
  gather_values(most * width_, what);
  const std::int64_t value_bytes = compress_ ? sizeof(BFloat16) : sizeof(float);
  bytes_sent_ = static_cast<std::int64_t>(own_counts_.size() * sizeof(std::int64_t)) +
                most * (static_cast<std::int64_t>(sizeof(std::int32_t)) + width_ * value_bytes);
  inputs_.clear();
  for (int rank = 0; rank < communicator_.size(); ++rank) {
    std::int64_t at = rank * most;
    const auto& nodes = all_nodes_[static_cast<std::size_t>(rank)];
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      const std::int64_t count = counts_of(rank)[k];
      inputs_.push_back({nodes[k], count, all_rows_.as<std::int32_t>().data() + at,
                         all_values_.as<float>().data() + at * width_});
      at += count;
    }
  }
}

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/device_sparse_sum.h"

#include <algorithm>

#include "comm/flight_recorder.h"
#include "core/error.h"
#include "model/layers/projection.h"

namespace lockstep {

namespace {

Buffer words(Device& device, std::int64_t count) {
  return {device, static_cast<std::size_t>(count) * sizeof(std::int32_t)};
}

}  // namespace

/// What group_by_row() takes and gives, for the places of some leaves.
struct DeviceSparseSum::Workspace {
  Workspace(Scratch& scratch, const EmbeddingKernels& kernels, std::int64_t places)
      : ids(scratch.take<float>(places)),
        touched(scratch.take<std::int32_t>(TouchedRows::words(places))),
        keys(scratch.take<std::byte>(static_cast<std::int64_t>(kernels.group_bytes(places)))) {}
  float* ids;
  std::int32_t* touched;
  std::byte* keys;
};

DeviceSparseSum::DeviceSparseSum(Place place, Communicator& communicator, ThreadPool& pool, int shards,
                                 std::int64_t table_rows, std::int64_t width, std::int64_t leaf_rows)
    : place_(place),
      own_(shards_of_rank(communicator.rank(), communicator.size(), shards)),
      table_rows_(table_rows),
      width_(width),
      leaf_rows_(std::min(leaf_rows, table_rows)) {
  Device& device = place.device;
  const std::vector<Subtree> subtrees =
      maximal_subtrees(static_cast<int>(own_.first), static_cast<int>(own_.last), shards);
  const auto most_rows = [&](std::int64_t leaves) { return std::min(table_rows_, leaves * leaf_rows_); };
  std::int64_t sum_rows = 0;
  for (const Subtree& subtree : subtrees)
    if (subtree.size() > 1) sum_rows += most_rows(subtree.size());
  rows_ = words(device, own_.size() * leaf_rows_);
  values_ = words(device, own_.size() * leaf_rows_ * width_);
  sum_rows_ = words(device, sum_rows);
  sum_values_ = words(device, sum_rows * width_);
  const auto counts = own_.size() + static_cast<std::int64_t>(subtrees.size()) + 1;
  counts_ = words(device, counts);
  host_counts_ = Buffer::pinned(device, static_cast<std::size_t>(counts) * sizeof(std::int32_t));

  std::int32_t* const count = counts_.as<std::int32_t>().data();
  for (std::int64_t i = 0; i < own_.size(); ++i)
    leaves_.push_back({count + i, rows_.as<std::int32_t>().data() + i * leaf_rows_,
                       values_.as<float>().data() + i * leaf_rows_ * width_});
  std::int64_t at = 0;
  for (std::size_t k = 0; k < subtrees.size(); ++k) {
    const Subtree& subtree = subtrees[k];
    if (subtree.size() == 1) {
      nodes_.push_back({subtree, leaf(subtree.first)});
      continue;
    }
    nodes_.push_back(
        {subtree,
         {count + own_.size() + static_cast<std::int64_t>(k), sum_rows_.as<std::int32_t>().data() + at,
          sum_values_.as<float>().data() + at * width_}});
    at += most_rows(subtree.size());
  }
  if (communicator.size() == 1) {
    total_ = total_on_device_ = nodes_.front().sum;
    total_on_device_.most = most_rows(shards);
    total_.count = host_counts_.as<std::int32_t>().data() + (total_.count - count);
    return;
  }
  host_.emplace(communicator, pool, shards, table_rows_, width_, leaf_rows_, false, &device);
  total_rows_ = words(device, most_rows(shards));
  total_values_ = words(device, most_rows(shards) * width_);
  total_ = {host_->total().count, total_rows_.as<std::int32_t>().data(), total_values_.as<float>().data()};
  total_on_device_ = {count + counts - 1, total_.rows, total_.values, most_rows(shards)};
}

void DeviceSparseSum::clear() { place_.device.zero(place_.stream, counts_.data(), counts_.size_bytes()); }

std::size_t DeviceSparseSum::workspace_bytes() const {
  std::int64_t most = 0;
  for (const Node& node : nodes_)
    if (node.leaves.size() > 1) most = std::max<std::int64_t>(most, node.leaves.size() * leaf_rows_);
  Scratch scratch;
  if (most > 0) (void)Workspace(scratch, place_.kernels.embedding, most);
  return scratch.used_bytes();
}

void DeviceSparseSum::add(void* workspace) {
  for (const Node& node : nodes_) {
    if (node.leaves.size() == 1) continue;
    Scratch scratch(workspace);
    add_node(node, Workspace(scratch, place_.kernels.embedding, node.leaves.size() * leaf_rows_));
  }
  if (host_) download_counts();
  count_known_ = host_.has_value();
}

void DeviceSparseSum::download_counts() {
  place_.device.download(place_.stream, host_counts_.data(), counts_.data(), counts_.size_bytes());
}

const SparseRows& DeviceSparseSum::total() {
  if (!count_known_) {
    const RecordedCall waiting("the GPU's rows of gradients", 0);
    download_counts();
    place_.device.synchronize(place_.stream);
    count_known_ = true;
  }
  return total_;
}

void DeviceSparseSum::add_node(const Node& node, const Workspace& workspace) {
  const EmbeddingKernels& kernels = place_.kernels.embedding;
  const Lane lane{.stream = place_.stream};
  const std::int64_t leaves = node.leaves.size(), places = leaves * leaf_rows_;
  const SparseRows& first = leaf(node.leaves.first);
  const TouchedRows touched =
      TouchedRows::carve(workspace.touched, places).with(node.sum.rows, node.sum.count);
  kernels.ids_of_rows(lane, leaves, leaf_rows_, first.count, first.rows, workspace.ids);
  kernels.group_by_row(lane, places, table_rows_, workspace.ids, -1, workspace.keys, touched);
  kernels.add_leaves(lane, leaves, leaf_rows_, width_, touched, first.values, node.sum.values);
}

void DeviceSparseSum::download() {
  if (!host_) return;
  std::int64_t before = 0;
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    const SparseRows& sum = nodes_[k].sum;
    const std::int64_t count =
        host_counts_
            .as<std::int32_t>()[static_cast<std::size_t>(sum.count - counts_.as<std::int32_t>().data())];
    LOCKSTEP_CHECK(count >= 0 && count <= std::min(table_rows_, nodes_[k].leaves.size() * leaf_rows_),
                   "{} rows of {}", count, leaf_rows_);
    host_->own_counts()[k] = count;
    if (count == 0) continue;
    const auto bytes = static_cast<std::size_t>(count) * sizeof(float);
    place_.device.download(place_.stream, host_->own_rows() + before, sum.rows, bytes);
    place_.device.download(place_.stream, host_->own_values() + before * width_, sum.values,
                           bytes * static_cast<std::size_t>(width_));
    before += count;
  }
}

void DeviceSparseSum::exchange(const char* what) {
  if (!host_) return;
  host_->reduce_nodes(what);
  const SparseRows& sum = host_->total();
  place_.device.upload(place_.stream, total_on_device_.count, sum.count, sizeof(std::int32_t));
  if (*sum.count == 0) return;
  const auto bytes = static_cast<std::size_t>(*sum.count) * sizeof(float);
  place_.device.upload(place_.stream, total_.rows, sum.rows, bytes);
  place_.device.upload(place_.stream, total_.values, sum.values, bytes * static_cast<std::size_t>(width_));
}

std::size_t DeviceSparseSum::memory_bytes() const {
  std::size_t bytes = host_ ? host_->memory_bytes() : 0;
  for (const Buffer* buffer : {&rows_, &values_, &sum_rows_, &sum_values_, &total_rows_, &total_values_})
    bytes += buffer->size_bytes();
  return bytes;
}

}  // namespace lockstep

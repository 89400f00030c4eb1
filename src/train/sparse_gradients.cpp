// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/sparse_gradients.h"

#include <algorithm>

#include "comm/flight_recorder.h"
#include "core/trace.h"

namespace lockstep {

// In bytes of GPU memory per number. A dense gradient is cleared and read for the whole table, and each rank
// sends almost two tables to other GPUs. Rows are written, sorted, added and read again. With several ranks
// they go to the host, to all ranks and back.
double sparse_share(bool on_device, int ranks) {
  if (!on_device) return 0.5;
  constexpr double kToOtherGpu = 10, kThroughHost = 100;  // what a byte costs there, in bytes of GPU memory
  constexpr double kDensePasses = 2, kRowPasses = 6, kHostPasses = 3;
  if (ranks == 1) return kDensePasses / kRowPasses;
  const double sent = 2.0 * (ranks - 1) / ranks;
  return (kDensePasses + kToOtherGpu * sent) / (kRowPasses + kThroughHost * kHostPasses);
}

void choose_sparse(VariableStore& variables, std::int64_t batch_size, double below) {
  for (std::size_t i = 0; i < variables.variables().size(); ++i) {
    const Variable& variable = variables.variables()[i];
    if (!variable.row_bound) continue;
    const std::int64_t touched = variable.row_bound->per_sample * batch_size + variable.row_bound->per_step;
    if (static_cast<double>(touched) <= below * static_cast<double>(variable.shape[0]))
      variables.make_sparse(static_cast<VariableId>(i));
  }
}

SparseGradients::SparseGradients(DeviceSparseSum::Place place, Communicator& communicator, ThreadPool& pool,
                                 const VariableStore& variables, int shards, std::int64_t max_samples,
                                 bool compress)
    : place_(place),
      own_(shards_of_rank(communicator.rank(), communicator.size(), shards)),
      exchanges_(communicator.size() > 1) {
  LOCKSTEP_CHECK(!compress || place.device.is_host() || variables.sparse().empty(),
                 "rows on {} are not rounded", place.device.name());
  std::size_t workspace = 0;
  for (const VariableId id : variables.sparse()) {
    const Variable& variable = variables[id];
    const std::int64_t rows = variable.shape[0], width = variable.shape.num_elements() / rows;
    const RowBound& bound = *variable.row_bound;
    const std::int64_t leaf_rows = bound.per_sample * max_samples + bound.per_step;
    names_.push_back("rows of the gradient of " + variable.name);
    if (place.device.is_host()) {
      sums_.push_back(
          std::make_unique<SparseSum>(communicator, pool, shards, rows, width, leaf_rows, compress));
      continue;
    }
    device_sums_.push_back(
        std::make_unique<DeviceSparseSum>(place, communicator, pool, shards, rows, width, leaf_rows));
    workspace = std::max(workspace, device_sums_.back()->workspace_bytes());
  }
  workspace_ = Buffer(place.device, workspace);
  for (auto shard = static_cast<int>(own_.first); shard < own_.last; ++shard) {
    for (const auto& sum : sums_) leaves_.push_back(sum->leaf(shard));
    for (const auto& sum : device_sums_) leaves_.push_back(sum->leaf(shard));
  }
}

void SparseGradients::clear() {
  for (const auto& sum : sums_) sum->clear();
  for (const auto& sum : device_sums_) sum->clear();
}

const SparseRows* SparseGradients::leaves(int shard) const {
  return leaves_.data() + static_cast<std::size_t>(shard - own_.first) * names_.size();
}

void SparseGradients::reduce() {
  if (!device_sums_.empty()) return reduce_on_device();
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    const Traced traced("waiting", names_[i].c_str());
    sums_[i]->reduce(names_[i].c_str());
  }
}

// One rank waits for nothing. Several handle all tables together, so that the host waits only twice: for the
// backward pass with the counts, and for the rows that go to other ranks.
void SparseGradients::reduce_on_device() {
  for (const auto& sum : device_sums_) sum->add(workspace_.data());
  if (!exchanges_) return;
  const Traced traced("waiting", "for rows of gradients");
  const auto arrived = [&](const char* what) {
    const RecordedCall waiting(what, 0);
    place_.device.synchronize(place_.stream);
  };
  arrived("the GPU's work up to the rows of gradients");
  for (const auto& sum : device_sums_) sum->download();
  arrived("the GPU's rows of gradients");
  for (std::size_t i = 0; i < device_sums_.size(); ++i) device_sums_[i]->exchange(names_[i].c_str());
}

std::size_t SparseGradients::memory_bytes() const {
  std::size_t bytes = workspace_.size_bytes();
  for (const auto& sum : sums_) bytes += sum->memory_bytes();
  for (const auto& sum : device_sums_) bytes += sum->memory_bytes();
  return bytes;
}

std::int64_t SparseGradients::bytes_sent() const {
  std::int64_t bytes = 0;
  for (const auto& sum : sums_) bytes += sum->bytes_sent();
  for (const auto& sum : device_sums_) bytes += sum->bytes_sent();
  return bytes;
}

}  // namespace lockstep

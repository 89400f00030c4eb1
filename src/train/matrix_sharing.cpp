// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "train/matrix_sharing.h"

#include <algorithm>
#include <numeric>

#include "core/trace.h"

namespace lockstep {

std::vector<int> share_evenly(const std::vector<double>& costs, int workers) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<double> load(static_cast<std::size_t>(workers));
  std::vector<int> worker_of(costs.size());
  for (const std::size_t item : order) {
    const auto least = std::ranges::min_element(load);
    *least += costs[item];
    worker_of[item] = static_cast<int>(least - load.begin());
  }
  return worker_of;
}

MatrixSharing::MatrixSharing(MatrixWork& work, const UpdateContext& context, Communicator& communicator)
    : work_(work), context_(context), communicator_(communicator) {
  const std::vector<MatrixWork::Matrix>& matrices = work.matrices();
  std::vector<double> costs, own_costs;
  for (const MatrixWork::Matrix& matrix : matrices) costs.push_back(matrix.cost);
  owner_ = share_evenly(costs, communicator.size());
  std::vector<std::size_t> own;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    if (owner_[i] != communicator.rank()) continue;
    own.push_back(i);
    own_costs.push_back(costs[i]);
  }
  work.own(own);
  of_thread_.resize(static_cast<std::size_t>(context.pool.size()));
  const std::vector<int> thread_of = share_evenly(own_costs, context.pool.size());
  for (std::size_t i = 0; i < own.size(); ++i)
    of_thread_[static_cast<std::size_t>(thread_of[i])].push_back(own[i]);

  if (communicator.size() == 1 || matrices.empty()) return;
  float* place = work.directions();
  if (!context.device.is_host()) {
    staging_ =
        Buffer::pinned(context.device, static_cast<std::size_t>(matrices.back().place.last) * sizeof(float));
    place = static_cast<float*>(staging_.data());
  }
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    float* const address = place + matrices[i].place.first;
    const std::size_t bytes = static_cast<std::size_t>(matrices[i].place.size()) * sizeof(float);
    if (owner_[i] != communicator.rank()) {
      in_.push_back({address, bytes, owner_[i]});
      continue;
    }
    for (int rank = 0; rank < communicator.size(); ++rank) {
      if (rank == communicator.rank()) continue;
      out_.push_back({address, bytes, rank});
      bytes_sent_ += static_cast<std::int64_t>(bytes);
    }
  }
}

void MatrixSharing::run() {
  context_.pool.run([&](int t) {
    const Traced traced("update", "matrices");
    const auto thread = static_cast<std::size_t>(t);
    for (const std::size_t matrix : of_thread_[thread]) work_.compute(context_.lanes[thread], matrix);
  });
  if (communicator_.size() > 1 && !work_.matrices().empty()) exchange();
  context_.pool.run([&](int t) {
    const auto threads = static_cast<std::size_t>(context_.pool.size());
    for (std::size_t i = static_cast<std::size_t>(t); i < work_.matrices().size(); i += threads)
      work_.finish(context_.lanes[static_cast<std::size_t>(t)], i);
  });
}

void MatrixSharing::exchange() {
  const Traced traced("waiting", "for matrices");
  void* const stream = context_.lanes.front().stream;
  const auto for_each = [&](bool mine, const auto& copy) {
    if (staging_.size_bytes() == 0) return;
    const std::vector<MatrixWork::Matrix>& matrices = work_.matrices();
    for (std::size_t i = 0; i < matrices.size(); ++i)
      if ((owner_[i] == communicator_.rank()) == mine)
        copy(work_.directions() + matrices[i].place.first,
             static_cast<float*>(staging_.data()) + matrices[i].place.first,
             static_cast<std::size_t>(matrices[i].place.size()) * sizeof(float));
  };
  for_each(true, [&](const float* device, float* host, std::size_t bytes) {
    context_.device.download(stream, host, device, bytes);
  });
  if (staging_.size_bytes() > 0) context_.device.synchronize(stream);
  communicator_.exchange_many(out_, in_, "matrices of the update");
  for_each(false, [&](float* device, const float* host, std::size_t bytes) {
    context_.device.upload(stream, device, host, bytes);
  });
}

}  // namespace lockstep

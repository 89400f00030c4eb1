// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "run/setup/whiten_sets.h"

#include <array>
#include <optional>
#include <vector>

#include "comm/agree.h"
#include "comm/tree.h"
#include "core/log.h"
#include "core/range.h"
#include "core/timer.h"
#include "data/whitening.h"
#include "session/run_whitening.h"

namespace lockstep {

namespace {

constexpr const char* kWhat = "whitening";

std::vector<Subtree> nodes_of_rank(const CovarianceSums& sums, int rank, int ranks) {
  const Range own = shards_of_rank(rank, ranks, sums.num_parts());
  return maximal_subtrees(static_cast<int>(own.first), static_cast<int>(own.last), sums.num_parts());
}

/// The sum over all parts, on rank 0: each rank gives the sums of its nodes, in the order of the parts.
CovariancePart summed_on_chief(Communicator& world, const CovarianceSums& sums,
                               std::vector<CovariancePart> mine) {
  const std::size_t bytes = static_cast<std::size_t>(sums.part_values()) * sizeof(double);
  if (world.rank() != 0) {
    for (const CovariancePart& part : mine) world.send(part.data(), bytes, 0, kWhat);
    return {};
  }
  CovarianceFold fold;
  for (int rank = 0; rank < world.size(); ++rank) {
    const std::vector<Subtree> nodes = nodes_of_rank(sums, rank, world.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      CovariancePart part(rank == 0 ? std::move(mine[i]) : CovariancePart());
      if (rank != 0) {
        part.resize(static_cast<std::size_t>(sums.part_values()));
        world.receive(part.data(), bytes, rank, kWhat);
      }
      fold.push(std::move(part), nodes[i].size());
    }
  }
  return fold.finish();
}

void broadcast(Communicator& world, Whitening& values) {
  std::array<std::int64_t, 2> sizes{std::ssize(values.mean), std::ssize(values.matrix)};
  world.broadcast(sizes.data(), sizeof sizes, 0, kWhat);
  values.mean.resize(static_cast<std::size_t>(sizes[0]));
  values.matrix.resize(static_cast<std::size_t>(sizes[1]));
  for (std::vector<float>* part : {&values.mean, &values.matrix})
    world.broadcast(part->data(), part->size() * sizeof(float), 0, kWhat);
}

Whitening computed(Communicator& world, const ReaderDataset& train, const SampleChoice* choice,
                   const std::string& name, int threads) {
  const Timer timer;
  std::optional<CovarianceSums> sums;
  std::vector<CovariancePart> mine;
  agree(
      world,
      [&] {
        sums.emplace(train, choice);
        for (const Subtree& node : nodes_of_rank(*sums, world.rank(), world.size()))
          mine.push_back(sums->sum(node.first, node.last, threads));
      },
      "computing the covariance");
  CovariancePart all = summed_on_chief(world, *sums, std::move(mine));
  const double after_sums = timer.seconds();
  Whitening values;
  agree(
      world,
      [&] {
        if (world.rank() == 0) values = whitening_of(train, *sums, all, threads);
      },
      "computing the whitening");
  broadcast(world, values);
  if (world.rank() == 0)
    log_info("whitening{}: covariance of {} values over {} vectors in {:.1f} s, {} components in {:.1f} s",
             name.empty() ? "" : " of " + name, sums->values(), sums->num_vectors(), after_sums,
             values.components(), timer.seconds() - after_sums);
  return values;
}

}  // namespace

Whitening shared_whitening(Communicator& world, const ReaderDataset* train, const SampleChoice* choice,
                           const std::string& name, const KeptNumbers& kept, int threads) {
  LOCKSTEP_CHECK(train != nullptr || !kept.run_dir.empty());
  if (kept.run_dir.empty()) return computed(world, *train, choice, name, threads);
  Whitening values;
  agree(
      world,
      [&] {
        if (world.rank() == 0) values = kept_whitening(kept.run_dir, name, kept.files);
      },
      "reading the whitening");
  broadcast(world, values);
  return values;
}

}  // namespace lockstep

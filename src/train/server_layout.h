// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Who does what where servers hold the variables (section `cluster`, docs/cluster.md): which ranks are
// servers (the last ones, unless tasks of a cluster are given), which server holds which variable, and into
// which parts a step's batch is divided. Pure arithmetic: every rank computes the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/ownership.h"
#include "config/params.h"
#include "model/variable_store.h"

namespace lockstep {

struct VariablePlacement;

/// Section `cluster`.
struct ClusterOptions {
  enum class Placement { greedy, round_robin };
  int servers = 0;                               ///< 0: all ranks hold all variables
  int staleness = 0;                             ///< updates that a gradient's variables may lack
  std::optional<std::int64_t> meet_every_steps;  ///< none: 1 without staleness, 10 with it
  Placement placement = Placement::greedy;
  std::optional<int> parts;       ///< of a batch; none: chosen
  std::optional<int> aggregate;   ///< parts of a step that make its update; none: all
  double worker_delay_steps = 0;  ///< of first_step_of_worker(); 0: all workers begin at once

  bool used() const { return servers > 0; }
  std::int64_t meeting() const { return meet_every_steps.value_or(staleness == 0 ? 1 : 10); }
};

std::span<const ParamSpec> cluster_table();
/// `section` is checked against cluster_table(). Throws Error(config).
ClusterOptions cluster_options(const Params& section);
/// The server of each variable with a dense gradient, in the order of their offsets. Throws Error(config),
/// also for a rule that matches no variable, and what a program's device function throws.
std::vector<int> server_places(const ClusterOptions& options, const VariablePlacement& placement,
                               const VariableStore& variables);
/// Bytes of variables on each server.
std::vector<std::int64_t> server_bytes(std::span<const int> places, int servers,
                                       const VariableStore& variables);

/// "2 servers with 113, 114 kB of variables (greedy); staleness 1; ranks meet every 10 steps".
std::string servers_text(const ClusterOptions& options, const VariableStore& variables,
                         std::span<const int> places, bool by_program = false);

/// Microshards per part: a power of two that divides `shards`. Given `parts`, the largest that makes at least
/// `parts` parts; otherwise the largest that gives each worker two parts, and is not below `threads` where
/// that is possible.
int shards_per_part(int shards, int workers, int threads, std::optional<int> parts);

struct ServerLayout {
  int ranks = 1, servers = 0;
  int shards = 1, part_shards = 1;
  std::vector<int> server_ranks;               ///< by server
  std::vector<int> places;                     ///< the server of each variable (server_places())
  bool placed_by_program = false;              ///< by its device function
  std::shared_ptr<const Ownership> ownership;  ///< workers own nothing

  /// One rank is a worker, too.
  int workers() const { return ranks == 1 ? 1 : ranks - servers; }
  int parts() const { return shards / part_shards; }
  bool is_server(int rank) const { return server_of(rank) >= 0; }
  int server_rank(int server) const { return server_ranks[static_cast<std::size_t>(server)]; }
  /// The server that a rank is; -1: it is a worker.
  int server_of(int rank) const;
  /// The server that says who computes what.
  int head() const { return server_ranks.front(); }
  /// Dense elements that a rank holds.
  std::int64_t elements(int rank) const;
};

/// Throws Error(config) if no rank is left for a worker.
void check_workers(const ClusterOptions& options, int ranks);

/// Called after VariableStore::commit(). `server_ranks`: of the tasks of ps; `places`: server_places().
/// Variables that lie side by side on one server form a range.
ServerLayout server_layout(const ClusterOptions& options, const VariableStore& variables,
                           std::vector<int> server_ranks, std::vector<int> places, int ranks, int shards,
                           int threads);

}  // namespace lockstep

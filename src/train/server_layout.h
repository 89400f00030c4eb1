// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Who does what where servers hold the variables (section `cluster`, docs/cluster.md): the last ranks are
// servers, the others workers; which server holds which variable; and into which parts a step's batch is
// divided. Pure arithmetic: every rank computes the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/ownership.h"
#include "core/params.h"
#include "model/variable_store.h"

namespace lockstep {

/// Section `cluster`.
struct ClusterOptions {
  enum class Placement { greedy, round_robin };
  int servers = 0;                               ///< the last ranks; 0: all ranks hold all variables
  int staleness = 0;                             ///< updates that a gradient's variables may lack
  std::optional<std::int64_t> meet_every_steps;  ///< none: 1 without staleness, 10 with it
  Placement placement = Placement::greedy;
  std::optional<int> parts;      ///< of a batch; none: chosen
  std::optional<int> aggregate;  ///< parts of a step that make its update; none: all

  bool used() const { return servers > 0; }
  std::int64_t meeting() const { return meet_every_steps.value_or(staleness == 0 ? 1 : 10); }
};

std::span<const ParamSpec> cluster_table();
/// `section` is checked against cluster_table(). Throws Error(config).
ClusterOptions cluster_options(const Params& section);

/// The server of each of some variables, by their bytes, in their order. greedy: the one that holds the
/// fewest bytes so far (the first of several). round_robin: one after the other.
std::vector<int> place_variables(std::span<const std::int64_t> bytes, int servers,
                                 ClusterOptions::Placement placement);

/// Bytes of variables on each server.
std::vector<std::int64_t> server_bytes(const ClusterOptions& options, const VariableStore& variables);

/// "servers hold 113 and 114 kB of variables; staleness 1; all ranks meet every 10 steps".
std::string servers_text(const ClusterOptions& options, const VariableStore& variables);

/// Microshards per part: a power of two that divides `shards`. Given `parts`, the largest that makes at least
/// so many parts; otherwise the largest that gives each worker two parts, and is not below `threads` where
/// that is possible.
int shards_per_part(int shards, int workers, int threads, std::optional<int> parts);

struct ServerLayout {
  int ranks = 1, servers = 0;
  int shards = 1, part_shards = 1;
  std::shared_ptr<const Ownership> ownership;  ///< workers own nothing

  int workers() const { return ranks - servers; }
  int parts() const { return shards / part_shards; }
  bool is_server(int rank) const { return rank >= workers(); }
  /// The server that says who computes what.
  int head() const { return workers(); }
  /// Dense elements that a rank holds.
  std::int64_t elements(int rank) const;
};

/// After VariableStore::commit(). Variables that lie side by side on one server form a range. Throws
/// Error(config) if no rank is left for a worker.
ServerLayout server_layout(const ClusterOptions& options, const VariableStore& variables, int ranks,
                           int shards, int threads);

}  // namespace lockstep

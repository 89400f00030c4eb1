// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A round on one rank, which is worker and server at once (cluster.ps under a debugger): the parts of each
// step one after the other, from the variables that the definition names, with the sums of servers. So it has
// the bits of any number of workers and servers. With `aggregate` the first parts make the update.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/buffer.h"
#include "core/function_ref.h"
#include "core/thread_pool.h"
#include "train/part_sums.h"
#include "train/server_loop.h"
#include "train/server_messages.h"

namespace lockstep {

class ServerAlone {
 public:
  /// References outlive it. `elements`: of the flat variables.
  ServerAlone(const ServerLayout& layout, const ServerLoop::Options& options, std::int64_t elements,
              const NodeArithmetic& arithmetic, ThreadPool& pool);

  /// The steps of the round. `values`: the flat variables, of version round.first; after it of the last
  /// update. `changed` is called when they change. update() is called for each step in order.
  void run(ServerRound round, float* values, FunctionRef<void()> changed,
           FunctionRef<PartGradient(const PartTicket&)> compute,
           FunctionRef<void(const ServerLoop::Sum&)> update);

  /// The losses of the last step, after run(); zeros for parts that `aggregate` leaves out.
  std::span<const double> last_losses() const { return losses_; }
  std::size_t memory_bytes() const;

 private:
  float* version(std::int64_t number);
  void put(std::int64_t number, float* values, FunctionRef<void()> changed);

  const ServerLayout& layout_;
  const ServerLoop::Options options_;
  PartBuffers buffers_;
  PartSums sums_;
  std::vector<Buffer> versions_;  ///< the latest `staleness` + 1; none without staleness
  std::vector<char> accepted_;    ///< by part
  std::vector<double> losses_;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The part of a server in a round (cluster.ps): gives variables to workers, receives the gradients of parts,
// adds those of a step along the tree, and updates its variables, step after step. The first server (the
// head) also gives out the parts: those of step k when at most `staleness` updates before it are missing.
//
// Every gradient of step k is computed from the variables of version max(first step of the round, k -
// staleness), not from those that happen to be there. So the result does not depend on the number of workers
// and servers, nor on their speed, unless `aggregate` drops parts. A server keeps the versions that parts in
// progress need.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "comm/mailbox.h"
#include "core/function_ref.h"
#include "core/thread_pool.h"
#include "train/part_sums.h"
#include "train/server_layout.h"
#include "train/server_messages.h"
#include "train/table_rows.h"

namespace lockstep {

class ServerLoop {
 public:
  struct Options {
    int rank = 0;
    int staleness = 0;
    std::optional<int> aggregate;
    int leaf_doubles = 0;      ///< of the losses of one part
    TableRows rows = {0, {}};  ///< of what this server holds
  };
  /// References outlive the loop.
  ServerLoop(Mailbox& mailbox, const ServerLayout& layout, const Options& options,
             const NodeArithmetic& arithmetic, ThreadPool& pool);

  struct Sum {
    std::int64_t step;
    const float* gradient;        ///< of what the server holds, one range after the other
    std::span<const char> parts;  ///< which parts it has
  };
  /// Serves until all sums of the round are complete and no worker has more to send. Calls update(sum) for
  /// each step in order, the last one among them; `values` copies the present values to its argument.
  void run(ServerRound round, FunctionRef<void(const Sum&)> update, FunctionRef<void(float*)> values);

  /// The losses of the last step, on the head, after run(): leaf_doubles for each part; zeros for dropped
  /// ones.
  std::span<const double> last_losses() const { return losses_[slot(round_.last - 1)]; }
  double seconds_waited() const { return seconds_waited_; }
  std::int64_t bytes_sent() const { return bytes_sent_; }
  /// Parts that came after the update of their step.
  std::int64_t dropped() const { return dropped_; }
  std::size_t memory_bytes() const;

 private:
  struct Pull {
    int worker;
    std::int64_t version;
  };
  std::size_t slot(std::int64_t number) const {
    return static_cast<std::size_t>(number % static_cast<std::int64_t>(sums_.size()));
  }
  void handle(const Mailbox::Envelope& message);
  bool is_late(const PushHeader& header) const;
  void receive_push(const Mailbox::Envelope& message);
  void receive_losses(const Mailbox::Envelope& message);
  void give_parts();
  void answer_pulls();
  bool step_is_complete();
  void keep_version(FunctionRef<void(float*)> values);
  void accept(std::size_t slot);
  void clear(std::size_t slot);
  void collect_sent();
  bool is_head() const { return options_.rank == layout_.head(); }

  Mailbox& mailbox_;
  const ServerLayout& layout_;
  Options options_;
  PartBuffers buffers_;
  std::vector<PartSums> sums_;                       ///< by slot of a step
  std::vector<std::vector<double>> losses_;          ///< by slot of a step; the head
  std::vector<std::vector<char>> losses_there_;      ///< by slot of a step and part; the head
  std::vector<std::vector<char>> accepted_;          ///< by slot of a step and part
  std::vector<char> is_accepted_;                    ///< by slot of a step: accepted_ is known
  std::vector<Buffer> versions_;                     ///< by slot of a version: ValuesHeader and values
  std::vector<std::vector<Mailbox::Sent>> readers_;  ///< by slot of a version: sends in progress
  std::deque<Pull> pulls_;
  std::deque<int> takers_;
  std::deque<std::pair<PartTicket, Mailbox::Sent>> tickets_;       ///< on their way
  std::deque<std::pair<std::vector<char>, Mailbox::Sent>> masks_;  ///< on their way
  ServerRound round_;
  std::int64_t version_ = 0;    ///< updates done: the first step without a sum, but after the last one
  bool finished_ = false;       ///< the last sum is there
  std::int64_t next_step_ = 0;  ///< of the next ticket
  int next_part_ = 0;
  int workers_done_ = 0;
  double seconds_waited_ = 0;
  std::int64_t bytes_sent_ = 0, dropped_ = 0;
  Buffer scratch_, packed_;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What each rank spends its steps on. Every rank measures its own step and sends the times with the exchange
// of the next one (rank_values.h), so they cost no message, and after that exchange every rank knows those of
// all. Readers: straggler_hook.h, summaries/rank_summary.h, and the chief's ranks.json (rank_status.h).
//
// The session measures; the loop's thread owns it.
#pragma once

#include <string>
#include <vector>

#include "core/timer.h"
#include "session/rank_values.h"

namespace lockstep {

class Communicator;
class Trainer;

/// The times of one rank in one step. Hooks before the update count, those after it (summaries, evaluations,
/// checkpoints) do not.
struct RankTime {
  double step_seconds = 0;
  double work_seconds = 0;  ///< until the exchange, without waiting for other ranks
  double communication_seconds = 0,
         input_seconds = 0;      ///< of step_seconds: waiting, and by thread 0 gathering
  double peak_memory_bytes = 0;  ///< of the process so far, in host memory
  double peak_gpu_bytes = 0;     ///< that the rank has allocated on its GPU; 0: it has none
};

class RankTimes {
 public:
  /// All ranks, once, before values are allocated.
  void begin(RankValues& values, Communicator& control);
  /// There are no times of a last step: the next exchange brings none.
  void restart() { measured_ = known_ = false; }

  // The parts of a step, in this order.
  void step_begins(const Trainer& trainer);
  void exchanged(const Trainer& trainer);
  void step_ended(const Trainer& trainer);

  /// Whether, after an exchange, the times of all ranks in the step before are known.
  bool known() const { return known_; }
  RankTime of_rank(int rank) const;
  int ranks() const { return static_cast<int>(hosts_.size()); }
  /// The hosts by rank.
  const std::vector<std::string>& hosts() const { return hosts_; }

 private:
  RankValues* values_ = nullptr;
  RankValues::Slice slice_;
  std::vector<std::string> hosts_;
  Timer since_;
  double waited_ = 0, gathered_ = 0;  ///< by this rank before the step
  RankTime mine_;                     ///< of the last step
  bool measured_ = false;             ///< mine_ is that of a step
  bool sent_ = false, known_ = false;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Hooks of an evaluation or a prediction: what a program does in addition to one pass over a set. All ranks
// call them in the same order. An error that a hook throws on any rank ends the pass on all ranks with its
// message, after the batch.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace lockstep {

class PredictionStream;
struct EvaluationOutcome;

/// The batch of a pass: samples [first, first + count) of the set, if nothing is left out of it.
struct PassBatch {
  std::int64_t number = 0;  ///< from 0
  std::int64_t first = 0, count = 0;
  int rank = 0;
};

class PassHook {
 public:
  virtual ~PassHook() = default;
  /// Called before the first batch.
  virtual void begin(std::int64_t /*samples*/) {}
  virtual void before_batch(const PassBatch&) {}
  /// `predictions` has the rows of the batch; null in an evaluation.
  virtual void after_batch(const PassBatch&, const PredictionStream* /*predictions*/) {}
  /// Called after the last batch; not after an error. `outcome` is null in a prediction.
  virtual void end(const EvaluationOutcome* /*outcome*/) {}
};
using PassHookFunction = std::function<std::unique_ptr<PassHook>()>;

/// The hooks of one pass. Errors of one rank become errors of all.
class PassHooks {
 public:
  /// Makes the hooks. All ranks. `batch_size`: of all batches but the last. Throws SharedError.
  PassHooks(Communicator& world, const std::vector<PassHookFunction>& functions, std::int64_t samples,
            std::int64_t batch_size);

  bool empty() const { return hooks_.empty(); }
  /// All ranks. Throw SharedError.
  void begin();
  void before_batch();
  void after_batch(const PredictionStream* predictions);
  void end(const EvaluationOutcome* outcome);

  /// An evaluation calls it between a batch and the next one, for what comes after the one and before
  /// the other. Not 0 if a hook of this rank failed; then call rethrow() on all ranks.
  double between_batches();
  void rethrow();

 private:
  template <typename Call>
  void all(Call call);
  template <typename Call>
  void together(Call call);
  PassBatch batch() const;

  Communicator& world_;
  std::int64_t samples_, batch_size_, number_ = 0;
  std::vector<std::unique_ptr<PassHook>> hooks_;
  std::exception_ptr failed_;
};

}  // namespace lockstep

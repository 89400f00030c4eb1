// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a model says about the samples of a set, batch by batch, in their order, each sample once, on any
// number of ranks. `lockstep predict` and Estimator::predict() read it. Numbers are in the units of the data,
// also where the model is trained on normalised targets (train/output_units.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/range.h"
#include "core/shape.h"
#include "run/jobs/pass_hook.h"

namespace lockstep {

class OutputUnits;
class UsedDataset;
class RunContext;
struct Batch;

/// What a PredictionStream gives.
struct PredictionChoice {
  std::int64_t batch_size = 1;
  /// The layers whose outputs are given ("conv1", "split1:1") instead of what the heads predict; empty: none.
  std::vector<std::string> layers = {};
  std::uint64_t seed = 0;  ///< of the random transforms of the set, if it has them
  bool collects = true;    ///< false: each rank has the rows of its own samples, and rank 0 gets no others
};

class PredictionStream {
 public:
  /// The stream of a context whose variables have their values. References outlive the stream. All ranks.
  /// Throws Error(usage) for a layer that the model does not have, or that has no outputs of its own.
  PredictionStream(RunContext& context, const UsedDataset& samples, const PredictionChoice& choice);
  /// The stream of a context that it keeps, over its evaluation set.
  explicit PredictionStream(std::unique_ptr<RunContext> context,
                            const std::vector<PassHookFunction>& hooks = {});
  ~PredictionStream();
  PredictionStream(const PredictionStream&) = delete;
  PredictionStream& operator=(const PredictionStream&) = delete;

  /// All ranks: computes the next batch. False: there is none.
  bool next();

  /// How many samples the set has.
  std::int64_t size() const;
  /// The batch: samples [first(), first() + count()) of the set, if nothing is left out of it.
  std::int64_t first() const;
  std::int64_t count() const;
  const Batch& batch() const;
  /// The number in the set of the sample at a position of the order: another one if some are left out.
  std::int64_t sample_at(std::int64_t position) const;

  /// The samples of this rank, as positions in the batch.
  Range own() const;
  /// own().size() x values of a sample. Valid until next().
  std::span<const float> own_rows(int head) const;

  /// The heads of the model, or the layers. A head without a name has the empty name.
  const std::vector<std::string>& names() const;
  /// The shape of one sample.
  const Shape& shape(int head) const;
  /// The names and units of a head's numbers; of a layer none.
  const OutputUnits& units(int head) const;
  /// The rows of the batch on rank 0, count() x values of a sample; on other ranks empty. Valid until next().
  std::span<const float> rows(int head) const;
  /// rows() of the head of a name; "" if there is one head only. Throws Error(usage).
  std::span<const float> values(std::string_view name = {}) const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace lockstep

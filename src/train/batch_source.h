// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The input and the output of a batch, as the executor sees them. A BatchSource delivers the samples of any
// microshard of a global batch; an OutputSink receives what the model's heads compute from them.
//
// A batch is a range of positions in an epoch (data/step_plan.h). What the positions stand for is up to the
// source: samples of a data set (DatasetBatchSource), rows in memory (RowsBatchSource), or another source's
// samples, changed (FedBatchSource). A source allocates nothing per batch.
#pragma once

#include <cstdint>
#include <span>

#include "core/range.h"
#include "data/step_plan.h"
#include "kernels/lane.h"
#include "model/heads.h"

namespace lockstep {

/// One part of a global batch: the samples that one forward and backward pass computes.
struct Microshard {
  int shard;                  ///< its number in the global batch
  std::int64_t first_sample;  ///< position of its first sample in the global batch
  std::int64_t n;             ///< samples; may be 0
};

/// Who fetches: a worker, and the slot of the microshard. Labels live in memory of the slot.
struct FetchPlace {
  int worker = 0;
  int slot = 0;
};

class BatchSource {
 public:
  virtual ~BatchSource() = default;

  /// A batch begins, of which this rank computes the microshards `own`; it is done with all before. One
  /// thread.
  virtual void begin(const Batch& /*batch*/, Range /*own*/) {}
  /// The extent of any microshard, also of another rank's.
  virtual Microshard extent(const Batch& batch, int shard) const = 0;
  /// Writes the features of the n > 0 samples to host memory, and returns the labels. The labels are valid
  /// until the next call with the same slot. Workers call it concurrently, for different slots.
  virtual Labels fetch(const Batch& batch, const Microshard& microshard, FetchPlace place,
                       float* features) = 0;
  /// Returns the labels alone. `features` has room for the features, for sources that need them.
  virtual Labels fetch_labels(const Batch& batch, const Microshard& microshard, FetchPlace place,
                              float* features) {
    return fetch(batch, microshard, place, features);
  }
  /// Labels of the same form as fetch() gives, all 0, in the place of some that cannot be read.
  virtual Labels blank_labels(const Microshard& /*microshard*/, FetchPlace /*place*/) { return {}; }
};

/// What the heads compute for one microshard.
struct MicroshardOutputs {
  const Microshard& microshard;
  const Lane& lane;
  std::span<const float* const> outputs;  ///< by head, on the device
  const LabelBlock& labels;               ///< of all heads, in host memory (Heads::labels_of)
};

class OutputSink {
 public:
  virtual ~OutputSink() = default;
  /// Called after the loss of each own microshard that is not empty, on the worker that computes it. On a
  /// device the outputs are valid in the lane's stream, after the work that is already in it.
  virtual void take(const MicroshardOutputs& outputs) = 0;
};

/// One batch to run.
struct BatchRun {
  BatchSource& source;
  Batch batch;
  std::int64_t step = 0;          ///< global step, which keys the random numbers of layers
  const Batch* next = nullptr;    ///< of the same source: fetched in advance while a device computes
  OutputSink* outputs = nullptr;  ///< null: only losses are wanted
};

}  // namespace lockstep

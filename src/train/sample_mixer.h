// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Mixes the samples of a microshard (data/sample_mixing.h). The partner of a sample is the next one of its
// microshard, and for the last one the first: samples come in random order, so this is a random pair, and it
// needs no other sample. A microshard of one sample takes the next one of the batch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "data/sample_mixing.h"
#include "train/batch_source.h"

namespace lockstep {

class SampleMixer {
 public:
  /// For microshards of up to `most_samples`. References outlive the mixer.
  SampleMixer(const Dataset& dataset, const SampleMixing& mixing, std::size_t most_samples, int workers,
              int slots);

  struct Samples {
    std::span<const std::int64_t> samples;
    SampleKey key;  ///< of the first
  };
  struct Next {
    std::int64_t sample;
    SampleKey key;
  };
  /// Mixes the n samples whose features are in `features` (null: labels alone), and returns their label rows.
  /// `next` is the partner of a single sample. `scratch`: Dataset::scratch_values().
  Labels mix(const Samples& of, const Next& next, FetchPlace place, float* features, float* scratch);
  /// Label rows of zeros.
  Labels blank(FetchPlace place);

 private:
  /// Memory of a worker.
  struct Partner {
    std::vector<float> features, row;
    std::vector<std::int32_t> indices;
  };
  void gather_rows(std::span<const std::int64_t> samples, const SampleKey& key, Partner& partner, float* rows,
                   float* scratch) const;

  const Dataset& dataset_;
  const SampleMixing& mixing_;
  std::vector<Partner> partners_;
  std::vector<std::vector<float>> rows_;  ///< by slot
};

}  // namespace lockstep

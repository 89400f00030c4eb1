// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Test-time augmentation: predictions are averaged over views of each sample. The first view is the sample as
// prediction has it; the others have the random transforms of training. A view is a function of the seed, its
// number and the sample's place in the set, so it is the same on any number of ranks and threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace lockstep {

class Heads;
class PredictionStream;
class RunContext;
class UsedDataset;
struct DataOptions;
struct PredictionChoice;

/// The samples of `set` with the transforms of training, as `options` has them, in place of their own. Throws
/// Error(config) if these give another shape, Error(usage) if none of them is random.
UsedDataset with_training_transforms(const UsedDataset& set, const DataOptions& options,
                                     const std::string& base_directory);

/// Throws Error(config) for a head with a value for each place of a picture or a sequence: the places of two
/// views are not the same.
void check_views(const Heads& heads);

/// A stream for each of `views` views of `set`, added to `streams`. `kept` gets the sets that they refer to.
/// All ranks. Throws as the functions above.
void add_streams_of_views(RunContext& context, const UsedDataset& set, const DataOptions& options,
                          std::int64_t views, PredictionChoice choice,
                          std::vector<std::unique_ptr<PredictionStream>>& streams,
                          std::vector<UsedDataset>& kept);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What a run keeps of its data: in the run directory when it begins, and in each of its checkpoints
// (CheckpointHeader::kept), so that a checkpoint alone can predict. On-disk names: do not change.
//
//   vocabulary.txt or tokenizer.json, classes.txt, categories.txt   session/run_vocabulary.h
//   normalization.txt, normalization-NAME.txt     session/run_normalization.h; of elements .npy
//   whitening.npy, whitening-NAME.npy             session/run_whitening.h
//   class_counts.txt, class_counts-NAME.txt       session/run_class_counts.h
//   samples.json                                  data/sample_description.h; in checkpoints only
#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "data/dataset.h"
#include "data/sample_description.h"
#include "io/checkpoint.h"
#include "model/heads.h"

namespace lockstep {

/// All of it, of a training set that is normalised and whitened.
KeptFiles kept_data(const Dataset& data);
/// Also what the losses of its heads know of it.
KeptFiles kept_data(const Dataset& data, const Heads& heads);
/// Writes the files into a run directory. The chief.
void keep_data(const std::string& run_dir, const KeptFiles& kept);

/// The description of the samples in a checkpoint; nothing if it has none. `where`: the checkpoint.
std::optional<SampleDescription> kept_description(const KeptFiles* kept, const std::string& where);

/// Rank 0's files on all ranks; null if it has none.
std::shared_ptr<const KeptFiles> broadcast_kept(Communicator& world, std::shared_ptr<const KeptFiles> kept);

}  // namespace lockstep

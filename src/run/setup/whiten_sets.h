// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// data.whiten: the numbers that a run's data sets are whitened by. A new run computes them from its training
// set: the ranks share the sums, rank 0 computes the eigenvectors. Everything later takes those that the run
// directory keeps.
#pragma once

#include <string>

#include "comm/communicator.h"
#include "data/reader_dataset.h"
#include "io/checkpoint.h"

namespace lockstep {

/// Where a run keeps its numbers.
struct KeptNumbers {
  const std::string& run_dir;  ///< empty: nowhere, they are computed
  const KeptFiles* files;      ///< those of its checkpoint, which come first; null: none
};

/// The numbers for sets of an input `name` ("": the only one). `train` may be null if they are kept.
/// `choice`: of the samples of all inputs. All ranks. Throws SharedError.
Whitening shared_whitening(Communicator& world, const ReaderDataset* train, const SampleChoice* choice,
                           const std::string& name, const KeptNumbers& kept, int threads);

}  // namespace lockstep

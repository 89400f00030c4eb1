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

namespace lockstep {

/// The numbers for sets of an input `name` ("": the only one). `train` may be null if `kept_in`, the run
/// directory with the numbers, is not empty. `choice`: of the samples of all inputs. All ranks. Throws
/// SharedError.
Whitening shared_whitening(Communicator& world, const ReaderDataset* train, const SampleChoice* choice,
                           const std::string& name, const std::string& kept_in, int threads);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// How much memory a data set may take, and for whom.
#pragma once

#include <cstdint>

namespace lockstep {

/// Who uses a set, and how.
struct DatasetUse {
  int ranks_on_host = 1;
  int inputs = 1;  ///< sets that are joined to one, and share the memory
  /// Samples are used in an order without regard to blocks.
  bool random_order = false;
  /// Only StoredSamples::read() is called: nothing is kept in memory that can be read when it is asked for.
  bool read_once = false;
};

/// How a set is kept whose reader gives a store.
struct DatasetMemory {
  /// A larger set is not held in memory, but read while it is used, through places of this many bytes.
  std::int64_t bytes = std::int64_t{1} << 60;
  /// The same for a set that the ranks of a host share.
  std::int64_t shared_bytes = std::int64_t{1} << 60;
  double timeout_seconds = 300;  ///< of a wait for data
  int threads = 2;               ///< that read; 0: as many as it needs (SampleStreamOptions)
  /// Samples that are read together; 0: as their form suggests.
  std::int64_t block_samples = 0;
  /// Samples are used in an order without regard to blocks.
  bool random_order = false;
  /// As in DatasetUse.
  bool read_once = false;
};

}  // namespace lockstep

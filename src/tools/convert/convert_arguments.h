// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The arguments of `lockstep convert`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

struct ConvertArguments {
  std::string config, output;
  std::string part = "train";  ///< the set: train or eval
  std::string input;           ///< of data.inputs or data.targets; empty: the only one
  std::string to;  ///< hdf5, npy, npz, tfrecord, csv, png or jpeg; empty: by the ending of the output
  std::string features = "features", labels = "labels";  ///< names in the files
  std::int64_t shards = 1;                               ///< files
  std::optional<std::int64_t> chunk;                     ///< samples; empty: about 256 KiB
  int gzip = 0;                                          ///< level; 0: none
  std::optional<int> quality;                            ///< of jpeg; empty: 95
  bool fletcher32 = false, transforms = false, verify = true, force = false, quiet = false;
  std::vector<std::string> overrides;
};

}  // namespace lockstep

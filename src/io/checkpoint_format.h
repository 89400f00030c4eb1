// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Private to io: what the writer and the reader of checkpoints share. On-disk names: do not change.
#pragma once

#include <cstdint>
#include <string>

#include "core/hash.h"
#include "io/checkpoint.h"
#include "io/hdf5_handle.h"

namespace lockstep {

inline constexpr const char* kCheckpointFormat = "lockstep checkpoint";
inline constexpr std::int64_t kCheckpointVersion = 1;
/// The attribute `content` of a file without the state of a run; others have none.
inline constexpr const char* kWeightsOnly = "weights";

/// What the attribute header_checksum covers.
std::uint64_t checkpoint_header_checksum(const CheckpointHeader& header, std::int64_t version);

/// checkpoint_digest(), fed one tensor after the other in order of their paths.
class CheckpointDigest {
 public:
  void add(const std::string& path, const Tensor& tensor);
  /// To be called once, after the last tensor.
  std::string finish(const CheckpointHeader& header);

 private:
  Digest digest_;
};

}  // namespace lockstep

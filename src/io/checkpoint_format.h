// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to io: shared by the writer and the reader of checkpoints. On-disk names: do not change.
#pragma once

#include <cstdint>
#include <string>

#include "core/hash.h"
#include "io/checkpoint.h"
#include "io/hdf5_handle.h"

namespace lockstep {

inline constexpr const char* kCheckpointFormat = "lockstep checkpoint";
inline constexpr std::int64_t kCheckpointVersion = 1;
/// The value of the attribute `content` of a file without run state; other files have no such attribute.
inline constexpr const char* kWeightsOnly = "weights";

/// The value of the attribute header_checksum.
std::uint64_t checkpoint_header_checksum(const CheckpointHeader& header, std::int64_t version);

inline constexpr const char* kDataGroup = "data";
inline constexpr const char* kSettingsGroup = "state_settings";
/// Writes a group without datasets. The name of a file is the name of an attribute.
void write_kept_files(hid_t file, const char* group, const KeptFiles& kept, const Hdf5Context& context);
/// Null if the file has no such group. Throws Error(context.kind) if it is damaged.
std::shared_ptr<const KeptFiles> read_kept_files(hid_t file, const char* group, const Hdf5Context& context);

/// Computes checkpoint_digest() incrementally: one tensor after the other, in path order.
class CheckpointDigest {
 public:
  void add(const std::string& path, const Tensor& tensor);
  /// add() in steps: begin(), then all bytes in order.
  void begin(const std::string& path, const Tensor& tensor);
  void add_bytes(const void* data, std::size_t bytes);
  /// Call once, after the last tensor.
  std::string finish(const CheckpointHeader& header);

 private:
  Digest digest_;
};

}  // namespace lockstep

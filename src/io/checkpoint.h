// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Checkpoint files: HDF5, format version 1 (docs/architecture.md, "On disk"). On-disk names: do not change.
//
//   root attributes   format, version, global_step, epoch, samples_consumed, shards, seed, config,
//                     lockstep_version, created, digest, header_checksum (over all of these); and
//                     content = "weights" in a file that holds variables alone
//   /variables/<path>, /slots/<slot>/<path>, /moving_averages/<path>, /state/...
//                     one contiguous little-endian dataset per tensor with its true shape, and the attributes
//                     `dtype` (bf16 and f16 are stored as their 16 bits) and `checksum` (64-bit XXH3 of the
//                     bytes)
//
// HDF5's own structures carry checksums too (file format of HDF5 1.8), so that any flipped byte that matters
// is found. A file is complete or absent: it is written under a temporary name and renamed when it is on the
// disk. Thread-safe; HDF5 is held for one tensor at a time, so that readers of data need not wait for a whole
// file.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace lockstep {

/// What a checkpoint says about the run. Nothing in it depends on the number of ranks.
struct CheckpointHeader {
  std::int64_t global_step = 0;
  std::int64_t epoch = 0;             ///< of the next sample
  std::int64_t samples_consumed = 0;  ///< in that epoch
  std::int64_t shards = 1;            ///< microshards of a global batch
  std::uint64_t seed = 0;
  std::string config;            ///< the resolved configuration, as run
  std::string lockstep_version;  ///< of the program that wrote it
  std::string created;           ///< ISO 8601, UTC; empty when writing: now
  std::string digest;            ///< checkpoint_digest(); computed when writing
  bool weights_only = false;     ///< variables alone: no run continues from it
};

/// A tensor to be written. `path` has names separated by '/': "variables/conv1/kernel",
/// "slots/momentum/conv1/kernel", "moving_averages/conv1/kernel", "state/loss_scale".
struct CheckpointTensor {
  std::string path;
  Tensor tensor;
  bool on_device = false;  ///< its memory is a GPU's: for CheckpointWriter alone
};

/// A tensor in a file.
struct CheckpointEntry {
  std::string path;
  Shape shape;
  DType dtype = DType::f32;
};

/// Writes `path` atomically: afterwards it is whole and on the disk, or untouched, and no temporary is left.
/// Throws Error(checkpoint); for a full disk it says how much is needed and how much is free. `cancelled`
/// (may be null) ends the writing early, as a failure, when another thread sets it.
void write_checkpoint(const std::string& path, CheckpointHeader header,
                      std::span<const CheckpointTensor> tensors,
                      const std::atomic<bool>* cancelled = nullptr);

/// The most that such a file takes on the disk.
std::size_t checkpoint_file_bytes(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors);

/// 32 hexadecimal digits over path, dtype, shape and bytes of all tensors, in order of their paths, and over
/// global_step, epoch, samples_consumed, shards and seed. Equal digests mean equal runs from here on: config,
/// version and time of writing are not in it.
std::string checkpoint_digest(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors);

/// A checkpoint open for reading. Whatever is damaged or missing throws Error(checkpoint) that names the file
/// and the dataset.
class CheckpointFile {
 public:
  /// Opens the file, reads the header and the table of tensors, and verifies the header.
  explicit CheckpointFile(const std::string& path);
  ~CheckpointFile();
  CheckpointFile(CheckpointFile&&) noexcept;
  CheckpointFile& operator=(CheckpointFile&&) noexcept;

  const std::string& path() const;
  const CheckpointHeader& header() const;
  /// All tensors, sorted by path.
  const std::vector<CheckpointEntry>& entries() const;
  bool has(const std::string& path) const;
  /// Reads a tensor into `to`, in host memory, whose shape and dtype must be the entry's. Verifies the
  /// checksum; on an error the contents of `to` are undefined.
  void read_into(const std::string& path, Tensor to) const;
  /// Reads everything, verifies every checksum and recomputes the digest.
  void verify() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep

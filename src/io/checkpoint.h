// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Checkpoint files: HDF5, format version 1 (docs/architecture.md, "On disk"). On-disk names: do not change.
//
//   root attributes   format, version, global_step, epoch, samples_consumed, shards, seed, config,
//                     lockstep_version, created, digest, header_checksum (over all of these); and
//                     content = "weights" in a file that contains only variables; outside the checksum,
//                     computed_on in files of GPUs
//   /data             a group without datasets, whose attributes are the files that the run keeps of its data
//                     (KeptFiles): arrays of bytes, each with the name of its file; and the attribute
//                     `checksum` over all of them, which is outside header_checksum and digest
//   /state_settings   likewise: what the state depends on (CheckpointHeader::settings)
//   /variables/<path>, /slots/<slot>/<path>, /moving_averages/<path>, /state/...
//                     one contiguous little-endian dataset per tensor with its true shape, and the attributes
//                     `dtype` (bf16 and f16 are stored as their 16 bits) and `checksum` (64-bit XXH3 of the
//                     bytes)
//
// HDF5's own structures have checksums too (file format of HDF5 1.8), so any corrupted byte that matters is
// detected. A file is complete or absent: it is written under a temporary name and renamed when it is
// durable. Thread-safe. The HDF5 lock is held for one tensor at a time, so readers of data do not wait for a
// whole file.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"

namespace lockstep {

/// What a run keeps of its data, so that its model can be used without them: the contents of files by their
/// names in a run directory ("classes.txt", "normalization.txt"; session/kept_data.h).
using KeptFiles = std::map<std::string, std::string, std::less<>>;

/// The names of CheckpointHeader::settings. On-disk names: do not change.
inline constexpr std::string_view kClockSettings = "clock";   ///< core/run_clock.h
inline constexpr std::string_view kStateSettings = "pieces";  ///< session/state_settings.h

/// The state of the run in a checkpoint. Independent of the number of ranks.
struct CheckpointHeader {
  std::int64_t global_step = 0;
  std::int64_t epoch = 0;             ///< epoch of the next sample
  std::int64_t samples_consumed = 0;  ///< in that epoch
  std::int64_t shards = 1;            ///< microshards of a global batch
  std::uint64_t seed = 0;
  std::string config;            ///< the resolved configuration of the run
  std::string lockstep_version;  ///< of the writing program
  std::string computed_on;       ///< GPU, its libraries and their algorithms, a line each; empty on a CPU
  std::string created;           ///< ISO 8601, UTC; if empty, the time of writing
  std::string digest;            ///< checkpoint_digest(); computed when writing
  bool weights_only = false;     ///< only variables: no run can resume from it
  std::shared_ptr<const KeptFiles> kept = {};  ///< null: the file has none, as those of earlier versions
  /// The settings that the state depends on, by kind; empty in files of earlier versions.
  KeptFiles settings = {};

  /// A text of `settings`; empty: there is none.
  std::string setting(std::string_view name) const {
    const auto found = settings.find(name);
    return found != settings.end() ? found->second : std::string();
  }
};

/// A tensor to write. `path` has names separated by '/': "variables/conv1/kernel",
/// "slots/momentum/conv1/kernel", "moving_averages/conv1/kernel", "state/loss_scale".
struct CheckpointTensor {
  /// Takes the next bytes of a tensor: whole rows.
  using Take = std::function<void(const void* data, std::size_t bytes)>;

  std::string path;
  Tensor tensor;
  bool on_device = false;  ///< in GPU memory; only CheckpointWriter accepts this
  /// A function that gives the tensor's bytes to another one, in order, if `tensor` has no memory; else
  /// empty. Not for CheckpointWriter.
  std::function<void(const Take&)> pieces = {};
};

/// Where a checkpoint has the moving average of a variable.
inline std::string average_path(std::string_view variable) {
  return "moving_averages/" + std::string(variable);
}

/// A tensor in a file.
struct CheckpointEntry {
  std::string path;
  Shape shape;
  DType dtype = DType::f32;
};

/// Writes `path` atomically: afterwards the file is complete and durable, or untouched, and no temporary file
/// is left. Throws Error(checkpoint); for a full disk the error states the needed and the free bytes. If
/// another thread sets `cancelled` (may be null), writing fails early.
void write_checkpoint(const std::string& path, CheckpointHeader header,
                      std::span<const CheckpointTensor> tensors,
                      const std::atomic<bool>* cancelled = nullptr);

/// Writes the same bytes to an empty file that is open for reading and writing. `path` is for messages.
void write_checkpoint_to(int descriptor, const std::string& path, CheckpointHeader header,
                         std::span<const CheckpointTensor> tensors,
                         const std::atomic<bool>* cancelled = nullptr);

/// An upper bound of the size of such a file in bytes.
std::size_t checkpoint_file_bytes(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors);

/// 32 hexadecimal digits over path, dtype, shape and bytes of all tensors in path order, and over
/// global_step, epoch, samples_consumed, shards and seed; and over the clock of a run whose batches or data
/// have changed. Equal digests mean that runs continue identically.
/// Configuration, version and time of writing are not included.
std::string checkpoint_digest(const CheckpointHeader& header, std::span<const CheckpointTensor> tensors);

/// A checkpoint open for reading. Damaged or missing data throws Error(checkpoint) that names the file and
/// the dataset.
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
  /// Reads a tensor into `to`, which is in host memory and has the shape and dtype of the entry. Verifies the
  /// checksum. On an error the contents of `to` are undefined.
  void read_into(const std::string& path, Tensor to) const;
  /// Reads everything, verifies every checksum and recomputes the digest.
  void verify() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// One shard of a conversion: its files are written under temporary names, read back and compared, and
// renamed. The work is cut into pieces, so that ranks can agree between them. One rank; no communication.
//
// A conversion copies stored samples, without the set's memory or stream; the options about values move to
// the section that reads the result. Threads read and encode items of whole output chunks
// (core/ordered_work.h), and one thread writes them in order, so the bytes are those of one thread. Ranks
// share files, not parts of a file: parallel HDF5 would be another library and needs MPI-IO. They work for
// about 32 MiB, then agree on errors, signals and progress, so none waits longer than the watchdog allows. An
// item is hashed when it is read from the source, and again when the format's reader reads it back: the
// source is decoded once, and a difference is then searched for sample by sample. Finished shards are
// recorded with size and hash, under an identity over the source's fingerprint and all options; a shard is
// the unit of resumption.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/range.h"
#include "io/atomic_file.h"
#include "io/sample_file.h"
#include "tools/convert/conversion_plan.h"
#include "tools/convert/sample_source.h"

namespace lockstep {

class Conversion {
 public:
  virtual ~Conversion() = default;
  /// Converts, or compares, about `bytes` bytes. Returns true when the files are complete under their
  /// temporary names; publish() is next. Throws Error(data), Error(output).
  virtual bool advance(std::int64_t bytes) = 0;
  /// The files appear under their names, the one that was given last.
  virtual void publish() = 0;
  /// Samples written, and samples compared, so far.
  virtual std::int64_t written() const = 0;
  virtual std::int64_t verified() const = 0;
};

class ShardConversion final : public Conversion {
 public:
  /// `source` and `plan` outlive it. Throws Error(config) for a form that the format cannot hold.
  ShardConversion(const ConversionPlan& plan, const SampleSource& source, std::int64_t shard, int threads,
                  bool verify);

  bool advance(std::int64_t bytes) override;
  void publish() override;
  std::int64_t written() const override { return written_; }
  std::int64_t verified() const override { return verified_; }

 private:
  struct Item {
    EncodedBlock block;
    std::uint64_t hash = 0;
  };
  template <typename Work>
  void with_names(Work work) const;
  bool work(std::int64_t bytes);
  std::int64_t num_items() const;
  Range samples_of(std::int64_t item) const;  ///< of the shard
  void write(std::int64_t first, std::int64_t count);
  void open_result();
  void compare(std::int64_t first, std::int64_t count);
  [[noreturn]] void report_difference(const Range& samples) const;

  const ConversionPlan& plan_;
  const SampleSource& source_;
  const Range samples_;
  const int threads_;
  const bool verify_;
  std::vector<std::string> files_, temporaries_;
  std::vector<std::unique_ptr<RemoveOnFailure>> remove_;
  std::unique_ptr<SampleWriter> writer_;
  std::unique_ptr<SampleSource> result_;
  std::vector<std::uint64_t> hashes_;  ///< of each item
  std::int64_t next_ = 0;              ///< item to write, then to compare
  std::int64_t written_ = 0, verified_ = 0;
};

}  // namespace lockstep

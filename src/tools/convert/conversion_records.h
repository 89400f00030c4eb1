// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which shards of an interrupted conversion are finished: a hidden folder next to the output,
//
//   .out.h5.convert/plan    the identity of the conversion: a hash of the source's data and of all options
//   .out.h5.convert/00003   of a finished shard: a line per file, with bytes and hash
//
// It is removed when all shards are there. A rank records its own shards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep {

class ConversionRecords {
 public:
  ConversionRecords(std::string folder, std::string identity)
      : folder_(std::move(folder)), identity_(std::move(identity)) {}

  enum class Found { none, same, other };
  /// Whether an interrupted conversion is here. Throws Error(output).
  Found look() const;
  /// Begins the records anew.
  void begin() const;
  /// The shard was finished, and its files still have the same bytes: reads all of them.
  bool is_finished(std::int64_t shard, const std::vector<std::string>& files) const;
  void finished(std::int64_t shard, const std::vector<std::string>& files) const;
  void remove() const;

 private:
  std::string record(std::int64_t shard) const;
  std::string folder_, identity_;
};

}  // namespace lockstep

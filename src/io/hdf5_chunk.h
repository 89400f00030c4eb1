// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Chunks of HDF5 datasets, decoded and encoded outside HDF5's lock. HDF5 filters one chunk at a time in a
// process; here several threads can. Knows the filters that HDF5 itself has for numbers: deflate (gzip),
// shuffle and fletcher32. HDF5 User's Guide, chapter "Datasets", and the filters' descriptions in H5Z.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/hdf5_handle.h"

namespace lockstep {

/// A filter of compressed chunks that HDF5 does not find.
struct Hdf5Filter {
  int id = 0;
  unsigned index = 0;  ///< among those of the dataset
  std::string name;    ///< "lzf"
};

/// The filters of a dataset.
class ChunkFilters {
 public:
  /// Reads them from the creation properties of a chunked dataset. Nothing if one of them is not known here.
  /// The caller holds the Hdf5Lock.
  static std::optional<ChunkFilters> of(hid_t creation, const Hdf5Context& context);

  bool decodes() const { return !filters_.empty(); }
  /// Decodes a chunk as it is stored into `out`, which has the chunk's size. Bit i of `skipped` says that
  /// filter i was not applied. `stored` and `scratch` are overwritten. Throws Error(data) at `where` if the
  /// chunk is damaged. Needs no lock.
  void decode(std::vector<std::byte>& stored, unsigned skipped, std::span<std::byte> out,
              std::vector<std::byte>& scratch, const std::string& where) const;
  /// Encodes a whole chunk into `out`, with zlib's `level` for deflate. Bit i of the result says that filter
  /// i was not applied: deflate, where it does not make the chunk smaller. Needs no lock.
  unsigned encode(std::span<const std::byte> chunk, int level, std::string& out) const;

 private:
  struct Filter {
    enum class Kind { deflate, shuffle, fletcher32 } kind;
    std::size_t element_bytes;  ///< of shuffle
  };
  std::vector<Filter> filters_;  ///< in the order in which a writer applies them
};

}  // namespace lockstep

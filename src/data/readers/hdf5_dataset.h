// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal to the HDF5 reader: an open dataset whose first axis counts samples, and reading rows of it. The
// caller holds the Hdf5Lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset_parts.h"
#include "io/hdf5_chunk.h"
#include "io/hdf5_handle.h"

namespace lockstep {

/// The context of errors about a whole file.
Hdf5Context hdf5_data_context(const std::string& path);

/// A member of the records of a compound dataset (a table).
struct Hdf5Column {
  std::string name;
  std::vector<hsize_t> extents;  ///< of an array; none: one value
};

struct Hdf5Reordered;

struct Hdf5Dataset {
  Hdf5Handle id;
  std::string name, where, path;  ///< "image"; "FILE, dataset image"; FILE
  std::vector<hsize_t> extents;
  hsize_t rows_per_chunk = 1;
  /// The filters of chunks, if all are known, and each chunk holds whole rows.
  std::optional<ChunkFilters> filters;
  /// Chunks are as the values in memory, each holds whole rows, and is large enough to be read by itself:
  /// without the copy that HDF5 makes of each.
  bool direct_chunks = false;
  /// A filter of the chunks that HDF5 does not find.
  std::optional<Hdf5Filter> missing_filter = std::nullopt;
  /// Of extents[i], the axis in the file; empty: they are in the order of the file (hdf5_axes.h).
  std::vector<int> axes = {};
  std::shared_ptr<Hdf5Reordered> reordered = nullptr;
  bool of_matlab = false;  ///< extents are those that MATLAB shows
  hid_t file_class = H5T_NO_CLASS;
  Hdf5Handle file_type;  ///< of a value; enumerations and bitfields are the integers that they store
  /// Of a table, those that a row consists of: a dataset is then as if it had their values, one after the
  /// other. choose_columns() chooses them.
  std::vector<Hdf5Column> columns = {};

  Hdf5Context context() const {
    return {ErrorKind::data, where,
            "The file may be damaged or truncated; h5dump and h5ls show its contents."};
  }
  std::int64_t rows() const { return static_cast<std::int64_t>(extents[0]); }
  std::int64_t values_per_row() const;
};

/// Opens dataset `name` of `file`, which was opened from `path`; or one column of a table, "table.column".
/// `samples_last`: the last axis comes first. Throws Error(data) if there is none, if HDF5 cannot read it, or
/// if its number of values, in 8 bytes each, does not fit into 63 bits: products of extents never overflow.
Hdf5Dataset open_hdf5_dataset(hid_t file, const std::string& path, const std::string& name,
                              bool samples_last = false);

/// True if `file` has a link of this name, wherever it leads; or the column of a table.
bool has_hdf5_link(hid_t file, const std::string& name);

/// Calls slab(first, count) for consecutive ranges of rows that cover [rows.first, rows.last) and end at
/// chunk boundaries, each about 8 MiB.
template <typename Slab>
void for_each_slab(const Hdf5Dataset& data, const RowRange& rows, std::int64_t row_bytes, Slab slab) {
  constexpr std::int64_t kSlabBytes = std::int64_t{8} << 20;
  const std::int64_t chunk =
      static_cast<std::int64_t>(std::clamp<hsize_t>(data.rows_per_chunk, 1, data.extents[0]));
  const std::int64_t step =
      std::max<std::int64_t>(1, kSlabBytes / std::max<std::int64_t>(1, row_bytes * chunk)) * chunk;
  for (std::int64_t first = rows.first; first < rows.last;) {
    const std::int64_t last = std::min(rows.last, (first / step + 1) * step);
    slab(first, last - first);
    first = last;
  }
}

/// Reads rows [first, first + count) into `out`, each value as `memory_type`.
void read_slab(const Hdf5Dataset& data, std::int64_t first, std::int64_t count, hid_t memory_type, void* out);
/// The same of a dataset with these extents in the file, in the order of the file.
void read_stored_slab(const Hdf5Dataset& data, const std::vector<hsize_t>& extents, hsize_t first,
                      hsize_t count, hid_t memory_type, void* out);
/// H5Dread of a selection. Throws Error(data) that says what is missing.
void read_selection(const Hdf5Dataset& data, hid_t memory_type, hid_t in_memory, hid_t in_file, void* out,
                    const Hdf5Context& context, std::string_view action);

// Tables (hdf5_table.cpp). Errors are Error(data).
/// One column of a table becomes its values.
void choose_column(Hdf5Dataset& data, const std::string& name);
/// Columns of a table become its values, as float32: those of `names`, which may be patterns, in this order;
/// none: all with numbers but the column of `labels` ("table.column").
void choose_columns(Hdf5Dataset& data, const std::vector<std::string>& names, std::string_view labels);
/// The values of some columns of a row.
std::int64_t values_of(const std::vector<Hdf5Column>& columns);
/// The type in memory of a row: its columns, one after the other, whose values have a type.
Hdf5Handle row_type_of(const Hdf5Dataset& data, hid_t value_type);

}  // namespace lockstep

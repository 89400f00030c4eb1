// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/hdf5_stored.h"

#include <set>

#include "io/hdf5_storage.h"

namespace lockstep {

void check_stored(const Hdf5Dataset& data, const RowRange& rows, bool allow_fill) {
  if (rows.first == rows.last || data.values_per_row() == 0) return;
  std::set<std::string> source_files;
  StorageQuery query(data.id.get(), data.context(), allow_fill, source_files);
  // A dataset with other axes is read as a whole.
  const bool in_order = data.axes.empty();
  const Hdf5Handle needed =
      in_order ? query.rows(static_cast<hsize_t>(rows.first), static_cast<hsize_t>(rows.last - 1))
               : query.rows(0, query.extents[0] - 1);
  query.needed = needed.get();
  const std::optional<MissingPart> part = missing_part(query);
  if (!part) return reserve_open_files(source_files.size(), data.where);
  const bool never_written = part->kind == MissingPart::Kind::never_written;
  throw Error(ErrorKind::data, part->what,
              in_order
                  ? fmt::format("{}, record {}", data.where, first_row(part->values.get(), query.context))
                  : data.where,
              never_written
                  ? "HDF5 would deliver its fill value, usually 0. Write the data, choose other rows, or set "
                    "allow_fill: true if the fill value is meant."
                  : "HDF5 would deliver other values, usually zeros. Copy the missing file to where it is "
                    "looked for, or make the dataset again.");
}

}  // namespace lockstep

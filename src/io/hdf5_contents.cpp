// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_contents.h"

#include "io/hdf5_handle.h"

namespace lockstep {

namespace {

struct Found {
  std::vector<Hdf5Entry> entries;
  std::size_t most;
};

/// Called by HDF5 for each object; 1 ends the walk.
herr_t add(hid_t file, const char* name, const H5O_info_t* info, void* data) {
  Found& found = *static_cast<Found*>(data);
  if (info->type != H5O_TYPE_DATASET) return 0;
  const Hdf5Handle id(H5Dopen2(file, name, H5P_DEFAULT), H5Dclose);
  if (id.get() < 0) return 0;
  const Hdf5Handle space(H5Dget_space(id.get()), H5Sclose), type(H5Dget_type(id.get()), H5Tclose);
  const int rank = space.get() < 0 ? -1 : H5Sget_simple_extent_ndims(space.get());
  if (rank < 0 || type.get() < 0) return 0;
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  if (rank > 0) H5Sget_simple_extent_dims(space.get(), extents.data(), nullptr);
  const H5T_class_t stored = H5Tget_class(type.get());
  const H5T_class_t kind = stored == H5T_ENUM || stored == H5T_BITFIELD ? H5T_INTEGER : stored;
  found.entries.push_back({name,
                           {extents.begin(), extents.end()},
                           kind == H5T_INTEGER || kind == H5T_FLOAT,
                           kind == H5T_INTEGER});
  return found.entries.size() < found.most ? 0 : 1;
}

}  // namespace

std::vector<Hdf5Entry> hdf5_contents(const std::string& path, std::size_t most) {
  const Hdf5Lock lock;
  const Hdf5Context context{ErrorKind::data, path, "h5ls shows what is in a good file."};
  const Hdf5Handle file = hdf5_open_file(path, context);
  Found found{{}, most};
  hdf5_checked(H5Ovisit(file.get(), H5_INDEX_NAME, H5_ITER_INC, add, &found), context, "list the file");
  return std::move(found.entries);
}

}  // namespace lockstep

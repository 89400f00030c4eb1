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

/// The text of a scalar attribute of fixed length; empty if there is none, or if it is something else.
std::string text_of(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return "";
  const Hdf5Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose);
  const Hdf5Handle type(attribute.get() < 0 ? -1 : H5Aget_type(attribute.get()), H5Tclose);
  if (type.get() < 0 || H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0)
    return "";
  std::string text(H5Tget_size(type.get()), '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0) return "";
  return text.substr(0, text.find('\0'));
}

/// h5py and PyTables store booleans as the names FALSE and TRUE of 0 and 1.
bool is_boolean(hid_t type) {
  int value = -1;
  return H5Tget_class(type) == H5T_ENUM && H5Tget_nmembers(type) == 2 &&
         H5Tenum_valueof(type, "TRUE", &value) >= 0;
}

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
                           kind == H5T_INTEGER,
                           kind == H5T_STRING,
                           is_boolean(type.get()),
                           kind == H5T_COMPOUND,
                           text_of(id.get(), "CLASS") == "DIMENSION_SCALE",
                           text_of(id.get(), "MATLAB_class")});
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

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Reads test vectors from an HDF5 file.
#pragma once

#include <hdf5.h>

#include <sstream>
#include <string>
#include <vector>

#include "io/hdf5_handle.h"

namespace lockstep {

class Hdf5Vectors {
 public:
  explicit Hdf5Vectors(const std::string& path)
      : context_{ErrorKind::data, path, ""}, file_(hdf5_open_file(path, context_)) {}
  template <typename T>
  std::vector<T> read(const std::string& name, hid_t type) const {
    const Hdf5Handle set(hdf5_checked(H5Dopen2(file_.get(), name.c_str(), H5P_DEFAULT), context_, name),
                         H5Dclose);
    const Hdf5Handle space(hdf5_checked(H5Dget_space(set.get()), context_, name), H5Sclose);
    std::vector<T> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space.get())));
    hdf5_checked(H5Dread(set.get(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), context_, name);
    return values;
  }
  std::vector<float> floats(const std::string& name) const { return read<float>(name, H5T_NATIVE_FLOAT); }
  std::vector<std::int32_t> integers(const std::string& name) const {
    return read<std::int32_t>(name, H5T_NATIVE_INT32);
  }
  /// The lines of a text attribute of the file.
  std::vector<std::string> lines(const std::string& attribute) const {
    const Hdf5Handle handle(
        hdf5_checked(H5Aopen(file_.get(), attribute.c_str(), H5P_DEFAULT), context_, attribute), H5Aclose);
    const Hdf5Handle type(hdf5_checked(H5Aget_type(handle.get()), context_, attribute), H5Tclose);
    std::string text(H5Tget_size(type.get()), '\0');
    hdf5_checked(H5Aread(handle.get(), type.get(), text.data()), context_, attribute);
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    return lines;
  }

 private:
  Hdf5Context context_;
  Hdf5Handle file_;
};

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Writes HDF5 files of every kind that a reader meets, for its tests. A file is created if it does not exist.
#pragma once

#include "io/hdf5_handle.h"
#include "unit/data/reader_test_support.h"

namespace lockstep::testing {

class Hdf5Files : public FolderTest {
 protected:
  using Extents = std::vector<hsize_t>;

  /// The result of a call of HDF5; throws if it failed.
  template <typename Result>
  static Result checked(Result result) {
    return hdf5_checked(result, {ErrorKind::bug, "test", ""}, "write a test file");
  }

  Hdf5Handle file(const std::string& name) const {
    const std::string full = path(name);
    return {checked(std::filesystem::exists(full)
                        ? H5Fopen(full.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)
                        : H5Fcreate(full.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)),
            H5Fclose};
  }

  /// A dataset; nothing is written to it without values. Without chunk extents the layout is contiguous.
  template <typename T>
  void add(const std::string& file_name, const std::string& name, const Extents& extents,
           const std::vector<T>& values, const Extents& chunk = {}, bool compressed = false) const {
    const Hdf5Lock lock;
    const Hdf5Handle in = file(file_name), creation(checked(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
    if (!chunk.empty()) checked(H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()));
    if (compressed) checked(H5Pset_deflate(creation.get(), 4));
    create<T>(in, name, hdf5_file_type(dtype_of<T>), extents, creation, values);
  }

  /// float32 values in the header of the dataset.
  void add_compact(const std::string& file_name, const std::string& name, const Extents& extents,
                   const std::vector<float>& values) const {
    const Hdf5Lock lock;
    const Hdf5Handle in = file(file_name), creation(checked(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
    checked(H5Pset_layout(creation.get(), H5D_COMPACT));
    create<float>(in, name, H5T_IEEE_F32LE, extents, creation, values);
  }

  /// A chunked dataset whose chunks pass through a registered filter.
  template <typename T>
  void add_filtered(const std::string& file_name, const std::string& name, const Extents& extents,
                    const std::vector<T>& values, const Extents& chunk, H5Z_filter_t filter) const {
    const Hdf5Lock lock;
    const Hdf5Handle in = file(file_name), creation(checked(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
    checked(H5Pset_chunk(creation.get(), static_cast<int>(chunk.size()), chunk.data()));
    checked(H5Pset_filter(creation.get(), filter, H5Z_FLAG_MANDATORY, 0, nullptr));
    create<T>(in, name, hdf5_file_type(dtype_of<T>), extents, creation, values);
  }

  /// Writes rows [first, first + count) of an existing dataset of two axes.
  template <typename T>
  void write_rows(const std::string& file_name, const std::string& name, hsize_t first, hsize_t count,
                  const std::vector<T>& values) const {
    const Hdf5Lock lock;
    const Hdf5Handle in = file(file_name),
                     data(checked(H5Dopen2(in.get(), name.c_str(), H5P_DEFAULT)), H5Dclose);
    const hsize_t start[2] = {first, 0}, block[2] = {count, values.size() / count};
    const Hdf5Handle space(H5Dget_space(data.get()), H5Sclose),
        memory(H5Screate_simple(2, block, nullptr), H5Sclose);
    checked(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start, nullptr, block, nullptr));
    checked(H5Dwrite(data.get(), hdf5_memory_type(dtype_of<T>), memory.get(), space.get(), H5P_DEFAULT,
                     values.data()));
  }

  /// float32 values that begin at `offset` in the file `raw`.
  void add_external(const std::string& file_name, const std::string& name, const Extents& extents,
                    const std::string& raw, off_t offset) const {
    const Hdf5Lock lock;
    const Hdf5Handle in = file(file_name), creation(checked(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
    checked(H5Pset_external(creation.get(), raw.c_str(), offset, H5F_UNLIMITED));
    create<float>(in, name, H5T_IEEE_F32LE, extents, creation, {});
  }

  /// rows x 2 float32; rows [4 i, 4 i + 4) come from the 4 rows of `dataset` in source i.
  void add_virtual(const std::string& file_name, const std::string& name,
                   const std::vector<std::string>& sources, const std::string& dataset, hsize_t rows) const {
    const Hdf5Lock lock;
    const Hdf5Handle in = file(file_name), creation(checked(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
    const hsize_t all[2] = {rows, 2}, part[2] = {4, 2};
    const Hdf5Handle whole(H5Screate_simple(2, all, nullptr), H5Sclose),
        source(H5Screate_simple(2, part, nullptr), H5Sclose);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      const hsize_t start[2] = {4 * i, 0};
      checked(H5Sselect_hyperslab(whole.get(), H5S_SELECT_SET, start, nullptr, part, nullptr));
      checked(H5Pset_virtual(creation.get(), whole.get(), sources[i].c_str(), dataset.c_str(), source.get()));
    }
    create<float>(in, name, H5T_IEEE_F32LE, {rows, 2}, creation, {});
  }

  /// Blocks of 4 rows from files without end: `pattern` contains %b, the number of the block.
  void add_growing(const std::string& file_name, const std::string& name, const std::string& pattern,
                   const std::string& dataset) const {
    const Hdf5Lock lock;
    const Hdf5Handle in = file(file_name), creation(checked(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
    const hsize_t all[2] = {4, 2}, most[2] = {H5S_UNLIMITED, 2}, start[2] = {0, 0},
                  count[2] = {H5S_UNLIMITED, 1};
    const Hdf5Handle whole(H5Screate_simple(2, all, most), H5Sclose),
        source(H5Screate_simple(2, all, nullptr), H5Sclose);
    checked(H5Sselect_hyperslab(whole.get(), H5S_SELECT_SET, start, all, count, all));
    checked(H5Pset_virtual(creation.get(), whole.get(), pattern.c_str(), dataset.c_str(), source.get()));
    checked(H5Dclose(checked(H5Dcreate2(in.get(), name.c_str(), H5T_IEEE_F32LE, whole.get(), H5P_DEFAULT,
                                        creation.get(), H5P_DEFAULT))));
  }

  void add_link(const std::string& file_name, const std::string& name, const std::string& other_file,
                const std::string& other_name) const {
    const Hdf5Lock lock;
    const Hdf5Handle in = file(file_name);
    checked(H5Lcreate_external(other_file.c_str(), other_name.c_str(), in.get(), name.c_str(), H5P_DEFAULT,
                               H5P_DEFAULT));
  }

  /// One value per sample, of 16-bit floating-point numbers given as bits.
  void add_half(const std::string& file_name, const std::string& name, DType type,
                const std::vector<std::uint16_t>& bits, bool big_endian) const {
    const Hdf5Lock lock;
    const Hdf5Handle in = file(file_name), creation(checked(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
    const Hdf5Handle half = hdf5_half_type(type, {ErrorKind::bug, name, ""}),
                     stored(H5Tcopy(half.get()), H5Tclose);
    checked(H5Tset_order(stored.get(), big_endian ? H5T_ORDER_BE : H5T_ORDER_LE));
    const hsize_t extents[1] = {bits.size()};
    const Hdf5Handle space(H5Screate_simple(1, extents, nullptr), H5Sclose);
    const Hdf5Handle data(checked(H5Dcreate2(in.get(), name.c_str(), stored.get(), space.get(), H5P_DEFAULT,
                                             creation.get(), H5P_DEFAULT)),
                          H5Dclose);
    checked(H5Dwrite(data.get(), half.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bits.data()));
  }

 private:
  template <typename T>
  static void create(const Hdf5Handle& in, const std::string& name, hid_t file_type, const Extents& extents,
                     const Hdf5Handle& creation, const std::vector<T>& values) {
    const Hdf5Handle space(
        checked(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr)), H5Sclose);
    const Hdf5Handle data(checked(H5Dcreate2(in.get(), name.c_str(), file_type, space.get(), H5P_DEFAULT,
                                             creation.get(), H5P_DEFAULT)),
                          H5Dclose);
    if (!values.empty())
      checked(
          H5Dwrite(data.get(), hdf5_memory_type(dtype_of<T>), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()));
  }
};

}  // namespace lockstep::testing

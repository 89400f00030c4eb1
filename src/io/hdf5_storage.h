// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Which part of a selection of a dataset's values is missing in its storage, and from which files it comes.
// HDF5 itself delivers fill values, usually zeros, without an error. The caller holds the Hdf5Lock.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/followed_files.h"
#include "io/hdf5_handle.h"

#if H5_VERSION_GE(1, 12, 1) || (H5_VERS_MAJOR == 1 && H5_VERS_MINOR == 10 && H5_VERS_RELEASE >= 7)
#define LOCKSTEP_HDF5_COMBINES_SELECTIONS 1
#else
#define LOCKSTEP_HDF5_COMBINES_SELECTIONS 0
#endif

namespace lockstep {

/// The first missing values that were found, as a selection of the dataset that was asked.
struct MissingPart {
  enum class Kind { never_written, missing };
  Hdf5Handle values;
  std::string what;
  Kind kind = Kind::missing;
};

/// What is asked of a dataset: the values selected by `needed`, a dataspace of the dataset's extents.
struct StorageQuery {
  StorageQuery(hid_t of, Hdf5Context with, bool fill, std::set<std::string>& files, int sources_above = 0);

  hid_t dataset;
  Hdf5Context context;
  bool allow_fill;
  std::set<std::string>& source_files;  ///< those that HDF5 opens for what is needed
  int depth;                            ///< virtual datasets above this one
  FollowedFiles* followed = nullptr;    ///< asked before each further file; null: all are permitted
  Hdf5Handle space;
  std::vector<hsize_t> extents;
  hid_t needed = -1;

  std::uint64_t row_bytes() const;
  /// All values of the dataset. Throws Error(data) if 64 bits cannot count their bytes.
  std::uint64_t bytes() const;
  /// The corners of the smallest block around what is needed; the last is within the block.
  std::pair<std::vector<hsize_t>, std::vector<hsize_t>> bounds() const;
  Hdf5Handle copy_of_needed() const;
  /// All values between two corners, both within the selection.
  Hdf5Handle block(const std::vector<hsize_t>& start, const std::vector<hsize_t>& end) const;
  /// All values of rows first to last, which is within the selection.
  Hdf5Handle rows(hsize_t first, hsize_t last) const;
  /// The part of what is needed in a block; `end` is within the block.
  MissingPart part_of_block(const std::vector<hsize_t>& start, const std::vector<hsize_t>& end,
                            std::string what, MissingPart::Kind kind) const;
  /// The part of what is needed in the rows from `row` on; none if nothing is.
  std::optional<MissingPart> part_from(hsize_t row, std::string what) const;
};

/// Returns the first missing part; never-written values are none if query.allow_fill.
std::optional<MissingPart> missing_part(const StorageQuery& query);
/// missing_part() of a virtual dataset with these creation properties.
std::optional<MissingPart> missing_in_virtual(const StorageQuery& query, hid_t creation);

hssize_t num_selected(hid_t space, const Hdf5Context& context);
/// a AND b, or a NOTB b, for dataspaces of the same number of axes.
Hdf5Handle combined(hid_t a, H5S_seloper_t operation, hid_t b, const Hdf5Context& context);
/// The smallest index of a selection along the first axis; the selection is not empty.
hsize_t first_row(hid_t space, const Hdf5Context& context);
/// The file that a dataset is in, which for an external link is another one than was opened.
std::string file_name_of(hid_t object, const Hdf5Context& context);
/// Where HDF5 looks for the file `name` of a link or mapping in `from`, in its order (H5F_prefix_open_file).
/// `variable`: HDF5_VDS_PREFIX or HDF5_EXT_PREFIX.
std::vector<std::string> candidate_paths(const std::string& name, const std::string& from,
                                         const char* variable);
/// Allows this process to open `count` files in addition to those that are open. HDF5 keeps all sources of a
/// virtual dataset open at once. One that it cannot open counts as missing: its values are fill values.
void reserve_open_files(std::size_t count, const std::string& where);
/// A prefix of HDF5's search paths with ${ORIGIN} replaced by the folder of `hdf5_file`.
std::string expanded_origin(const std::string& prefix, const std::string& hdf5_file);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The sources of a virtual dataset, which maps selections of itself to selections of datasets in other files.
// HDF5 looks for a source file in several places and delivers fill values if it finds none.
#include <algorithm>
#include <array>
#include <filesystem>

#include "io/hdf5_storage.h"

namespace lockstep {

namespace {

constexpr int kMaxDepth = 8;  ///< virtual datasets over virtual datasets; a cycle has no end

/// One mapping of a virtual dataset.
struct Mapping {
  std::string file, dataset;
  Hdf5Handle in_virtual, in_source;
  bool unlimited = false;
};

std::string name_in(hid_t creation, std::size_t index, const Hdf5Context& context,
                    ssize_t (*get)(hid_t, std::size_t, char*, std::size_t)) {
  const ssize_t length =
      hdf5_checked(get(creation, index, nullptr, 0), context, "read the sources of a virtual dataset");
  std::string name(static_cast<std::size_t>(length) + 1, '\0');
  hdf5_checked(get(creation, index, name.data(), name.size()), context,
               "read the sources of a virtual dataset");
  name.pop_back();
  for (std::size_t at = name.find("%%"); at != std::string::npos; at = name.find("%%", at + 1))
    name.erase(at, 1);
  return name;
}

/// Replaces an unlimited selection of the virtual dataset by as many blocks as its extents have room for.
bool limit(Hdf5Handle& space, const StorageQuery& query) {
  std::array<hsize_t, H5S_MAX_RANK> start{}, stride{}, count{}, block{};
  if (H5Sget_select_type(space.get()) != H5S_SEL_HYPERSLABS || H5Sis_regular_hyperslab(space.get()) <= 0 ||
      H5Sget_regular_hyperslab(space.get(), start.data(), stride.data(), count.data(), block.data()) < 0)
    return false;
  bool unlimited = false;
  for (std::size_t axis = 0; axis < query.extents.size(); ++axis) {
    const hsize_t room = query.extents[axis] - std::min(start[axis], query.extents[axis]);
    if (block[axis] == H5S_UNLIMITED) block[axis] = std::max<hsize_t>(1, room), unlimited = true;
    if (count[axis] == H5S_UNLIMITED)
      count[axis] = std::max<hsize_t>(1, (room + stride[axis] - 1) / stride[axis]), unlimited = true;
  }
  if (!unlimited) return false;
  space = Hdf5Handle(hdf5_checked(H5Scopy(query.space.get()), query.context, "select records"), H5Sclose);
  hdf5_checked(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), stride.data(), count.data(),
                                   block.data()),
               query.context, "select records");
  return true;
}

Mapping mapping_of(const StorageQuery& query, hid_t creation, std::size_t index) {
  const Hdf5Context& context = query.context;
  Mapping mapping;
  mapping.in_virtual =
      Hdf5Handle(hdf5_checked(H5Pget_virtual_vspace(creation, index), context, "read a mapping"), H5Sclose);
  if (H5Sget_simple_extent_ndims(mapping.in_virtual.get()) != static_cast<int>(query.extents.size()))
    throw Error(ErrorKind::data, "has a mapping with another number of axes", context.where, context.advice);
  mapping.unlimited = limit(mapping.in_virtual, query);
  mapping.in_source =
      Hdf5Handle(hdf5_checked(H5Pget_virtual_srcspace(creation, index), context, "read a mapping"), H5Sclose);
  if (H5Sget_select_type(mapping.in_virtual.get()) == H5S_SEL_ALL)
    mapping.in_virtual = query.rows(0, query.extents[0] - 1);
  mapping.file = name_in(creation, index, context, H5Pget_virtual_filename);
  mapping.dataset = name_in(creation, index, context, H5Pget_virtual_dsetname);
  return mapping;
}

/// The source files of one virtual dataset; the last one stays open for the next mapping.
class Sources {
 public:
  explicit Sources(const StorageQuery& query)
      : query_(query), virtual_file_(file_name_of(query.dataset, query.context)) {}

  /// The open file; negative if it cannot be opened, and reason() says why.
  hid_t open(const std::string& name) {
    if (name == name_) return file_.get();
    name_ = name;
    path_ = name;
    reason_ = "No such file or directory";
    if (name == ".") {
      path_ = virtual_file_;
      file_ = Hdf5Handle(H5Iget_file_id(query_.dataset), H5Fclose);
      return file_.get();
    }
    file_ = {};
    bool found = false;
    for (const std::string& path : candidate_paths(name, virtual_file_, "HDF5_VDS_PREFIX")) {
      std::error_code unknown;
      if (query_.followed != nullptr && std::filesystem::exists(path, unknown))
        query_.followed->open(path, "the source of a virtual dataset", query_.context.where);
      try {
        file_ = hdf5_open_file(path, {ErrorKind::data, path, ""});
        path_ = path;
        query_.source_files.insert(path);
        return file_.get();
      } catch (const Error& error) {
        std::error_code ignored;
        if (found || !std::filesystem::exists(path, ignored)) continue;
        found = true;
        path_ = path;
        reason_ = error.what_happened();
      }
    }
    return -1;
  }
  const std::string& path() const { return path_; }
  const std::string& reason() const { return reason_; }

 private:
  const StorageQuery& query_;
  std::string virtual_file_, name_, path_, reason_;
  Hdf5Handle file_;
};

/// What is missing of `mapped`, the part of the mapping that is needed.
std::optional<MissingPart> missing_in_source(const StorageQuery& query, Sources& sources,
                                             const Mapping& mapping, Hdf5Handle mapped) {
#if LOCKSTEP_HDF5_COMBINES_SELECTIONS
  const hid_t file = sources.open(mapping.file);
  const std::string source = fmt::format("comes from {}, dataset {}, which", sources.path(), mapping.dataset);
  const auto all_of_it = [&](const std::string& what) {
    return MissingPart{std::move(mapped), source + " " + what, MissingPart::Kind::missing};
  };
  if (file < 0) return all_of_it(fmt::format("cannot be opened: {}", sources.reason()));
  const Hdf5Handle dataset(H5Dopen2(file, mapping.dataset.c_str(), H5P_DEFAULT), H5Dclose);
  if (dataset.get() < 0) return all_of_it(fmt::format("cannot be opened: {}", hdf5_error_text()));
  const Hdf5Context context{ErrorKind::data, sources.path() + ", dataset " + mapping.dataset,
                            query.context.advice};
  StorageQuery below(dataset.get(), context, query.allow_fill, query.source_files, query.depth + 1);
  below.followed = query.followed;
  // Its name may lead through an external link.
  if (query.followed != nullptr)
    query.followed->open(file_name_of(dataset.get(), context), "the source of a virtual dataset",
                         query.context.where);
  if (below.extents.empty()) return std::nullopt;
  const hid_t in_virtual = mapping.in_virtual.get();
  const bool takes_all = H5Sget_select_type(mapping.in_source.get()) == H5S_SEL_ALL;
  const Hdf5Handle all = takes_all ? below.rows(0, below.extents[0] - 1) : Hdf5Handle();
  const hid_t in_source = takes_all ? all.get() : mapping.in_source.get();
  if (num_selected(in_source, context) != num_selected(in_virtual, context))
    return all_of_it("has another size than its mapping");
  if (H5Sget_simple_extent_ndims(in_source) != static_cast<int>(below.extents.size()))
    return all_of_it("has another number of axes than its mapping");
  const Hdf5Handle needed(hdf5_checked(H5Sselect_project_intersection(in_virtual, in_source, mapped.get()),
                                       query.context, "find the records in a source"),
                          H5Sclose);
  below.needed = needed.get();
  const std::vector<hsize_t> last = below.bounds().second;
  for (std::size_t axis = 0; axis < last.size(); ++axis)
    if (last[axis] >= below.extents[axis]) return all_of_it("is smaller than its mapping");
  std::optional<MissingPart> part = missing_part(below);
  if (!part) return std::nullopt;
  const hsize_t record = first_row(part->values.get(), context);
  return MissingPart{
      Hdf5Handle(hdf5_checked(H5Sselect_project_intersection(in_source, in_virtual, part->values.get()),
                              query.context, "find the records of a source"),
                 H5Sclose),
      fmt::format("comes from {}, dataset {}, whose record {} {}", sources.path(), mapping.dataset, record,
                  part->what),
      part->kind};
#else
  (void)sources, (void)mapping, (void)mapped;
  throw Error(ErrorKind::data, "is a virtual dataset, which this version of HDF5 cannot check",
              query.context.where, "Use HDF5 1.10.7 or newer.");
#endif
}

}  // namespace

std::optional<MissingPart> missing_in_virtual(const StorageQuery& query, hid_t creation) {
  if (query.depth >= kMaxDepth)
    return MissingPart{query.copy_of_needed(),
                       fmt::format("is virtual over more than {} levels: a cycle?", kMaxDepth)};
  std::size_t count = 0;
  hdf5_checked(H5Pget_virtual_count(creation, &count), query.context,
               "read the sources of a virtual dataset");
  Sources sources(query);
  Hdf5Handle uncovered = query.copy_of_needed();
  std::optional<MissingPart> first;
  const auto row_of = [&](const Hdf5Handle& space) { return first_row(space.get(), query.context); };
  const auto keep = [&](MissingPart part) {
    if (part.kind == MissingPart::Kind::never_written && query.allow_fill) return;
    if (!first || row_of(part.values) < row_of(first->values)) first = std::move(part);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const Mapping mapping = mapping_of(query, creation, i);
    Hdf5Handle mapped = combined(query.needed, H5S_SELECT_AND, mapping.in_virtual.get(), query.context);
    if (num_selected(mapped.get(), query.context) == 0) continue;
    if (num_selected(uncovered.get(), query.context) > 0)
      uncovered = combined(uncovered.get(), H5S_SELECT_NOTB, mapping.in_virtual.get(), query.context);
    // The extents of a dataset with unlimited mappings end where a source is missing: see open_hdf5_dataset.
    if (mapping.unlimited || (first && row_of(mapped) >= row_of(first->values))) continue;
    if (auto part = missing_in_source(query, sources, mapping, std::move(mapped))) keep(std::move(*part));
  }
  if (num_selected(uncovered.get(), query.context) > 0)
    keep({std::move(uncovered), "is covered by no source of the virtual dataset",
          MissingPart::Kind::never_written});
  return first;
}

}  // namespace lockstep

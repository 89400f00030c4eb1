// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Tables: datasets of a compound type, whose members are columns. A dataset with chosen columns reads as if
// it had their values.
#include <fmt/format.h>

#include <algorithm>

#include "core/name_list.h"
#include "core/name_pattern.h"
#include "data/readers/hdf5_dataset.h"
#include "io/hdf5_type.h"

namespace lockstep {

namespace {

/// A member of the type of a table, and the type of its values.
struct Member {
  Hdf5Column column;
  Hdf5Handle value_type;
  bool has_numbers() const {
    const H5T_class_t its_class = H5Tget_class(value_type.get());
    return its_class == H5T_INTEGER || its_class == H5T_FLOAT;
  }
};

Member member_of(const Hdf5Dataset& data, unsigned index) {
  const Hdf5Context context = data.context();
  char* const name = H5Tget_member_name(data.file_type.get(), index);
  Member member{.column = {.name = name == nullptr ? "" : name}, .value_type = {}};
  H5free_memory(name);
  member.value_type = Hdf5Handle(
      hdf5_checked(H5Tget_member_type(data.file_type.get(), index), context, "read the type"), H5Tclose);
  if (H5Tget_class(member.value_type.get()) != H5T_ARRAY) {
    member.value_type = hdf5_plain_type(member.value_type.get(), context);
    return member;
  }
  member.column.extents.resize(static_cast<std::size_t>(
      hdf5_checked(H5Tget_array_ndims(member.value_type.get()), context, "read the type")));
  hdf5_checked(H5Tget_array_dims2(member.value_type.get(), member.column.extents.data()), context,
               "read the type");
  const Hdf5Handle of_values(hdf5_checked(H5Tget_super(member.value_type.get()), context, "read the type"),
                             H5Tclose);
  member.value_type = hdf5_plain_type(of_values.get(), context);
  return member;
}

std::vector<Member> members_of(const Hdf5Dataset& data) {
  if (data.file_class != H5T_COMPOUND || data.extents.size() != 1)
    throw Error(
        ErrorKind::data,
        fmt::format("is no table, a dataset of one axis with a compound type: it has {} axes of {}",
                    data.extents.size(), hdf5_type_name(data.file_type.get())),
        data.where,
        data.file_class == H5T_COMPOUND
            ? "Store numbers: of complex ones the real and the imaginary parts on an axis of their own."
            : "Columns are the members of such a type; leave out their names.");
  std::vector<Member> members;
  const int count = hdf5_checked(H5Tget_nmembers(data.file_type.get()), data.context(), "read the type");
  for (int i = 0; i < count; ++i) members.push_back(member_of(data, static_cast<unsigned>(i)));
  return members;
}

[[noreturn]] void fail_unknown(const Hdf5Dataset& data, const std::vector<Member>& members,
                               const std::string& name) {
  std::vector<std::string_view> known;
  for (const Member& member : members) known.push_back(member.column.name);
  const std::string close = nearest(name, known);
  throw Error(ErrorKind::data, fmt::format("has no column '{}'", name), data.where,
              fmt::format("{}Its columns are {}.",
                          close.empty() ? "" : fmt::format("Did you mean '{}'? ", close), name_list(known)));
}

/// Whole chunks are not the values of columns.
void read_by_columns(Hdf5Dataset& data, Hdf5Handle value_type) {
  data.filters.reset();
  data.direct_chunks = false;
  data.file_type = std::move(value_type);
  data.file_class = H5Tget_class(data.file_type.get());
}

}  // namespace

std::int64_t values_of(const std::vector<Hdf5Column>& columns) {
  std::int64_t values = 0;
  for (const Hdf5Column& column : columns) {
    std::int64_t of_column = 1;
    for (const hsize_t extent : column.extents) of_column *= static_cast<std::int64_t>(extent);
    values += of_column;
  }
  return values;
}

Hdf5Handle row_type_of(const Hdf5Dataset& data, hid_t value_type) {
  const Hdf5Context context = data.context();
  const std::size_t bytes = H5Tget_size(value_type);
  Hdf5Handle row(
      hdf5_checked(H5Tcreate(H5T_COMPOUND, static_cast<std::size_t>(data.values_per_row()) * bytes), context,
                   "describe memory"),
      H5Tclose);
  std::size_t offset = 0;
  for (const Hdf5Column& column : data.columns) {
    const Hdf5Handle array(
        hdf5_checked(column.extents.empty()
                         ? H5Tcopy(value_type)
                         : H5Tarray_create2(value_type, static_cast<unsigned>(column.extents.size()),
                                            column.extents.data()),
                     context, "describe memory"),
        H5Tclose);
    hdf5_checked(H5Tinsert(row.get(), column.name.c_str(), offset, array.get()), context, "describe memory");
    offset += static_cast<std::size_t>(values_of({column})) * bytes;
  }
  return row;
}

void choose_column(Hdf5Dataset& data, const std::string& name) {
  std::vector<Member> members = members_of(data);
  const auto found =
      std::ranges::find_if(members, [&](const Member& member) { return member.column.name == name; });
  if (found == members.end()) fail_unknown(data, members, name);
  data.columns = {found->column};
  data.name += "." + name;
  data.where += "." + name;
  read_by_columns(data, std::move(found->value_type));
}

void choose_columns(Hdf5Dataset& data, const std::vector<std::string>& names, std::string_view labels) {
  const std::vector<Member> members = members_of(data);
  const auto is_label = [&](const Member& member) {
    return labels == fmt::format("{}.{}", data.name, member.column.name);
  };
  const auto add = [&](const Member& member) {
    if (std::ranges::find(data.columns, member.column.name, &Hdf5Column::name) == data.columns.end())
      data.columns.push_back(member.column);
  };
  for (const std::string& name : names) {
    const NamePattern pattern(name);
    bool is_known = false;
    for (const Member& member : members) {
      if (member.column.name != name && !pattern.matches(member.column.name)) continue;
      is_known = true;
      if (is_label(member))
        throw Error(ErrorKind::data,
                    fmt::format("column '{}' is a feature and the label", member.column.name), data.where,
                    "A sample's label would be given away: name it in one of both options.");
      if (!member.has_numbers())
        throw Error(ErrorKind::data,
                    fmt::format("column '{}' holds no numbers, but {}", member.column.name,
                                hdf5_type_name(member.value_type.get())),
                    data.where, "Leave it out of the option columns.");
      add(member);
    }
    if (!is_known) fail_unknown(data, members, name);
  }
  if (names.empty())
    for (const Member& member : members)
      if (member.has_numbers() && !is_label(member)) add(member);
  if (values_of(data.columns) == 0)
    throw Error(ErrorKind::data, "has no columns of numbers that are features", data.where,
                "Name them in the option columns.");
  read_by_columns(data, Hdf5Handle(H5Tcopy(H5T_IEEE_F32LE), H5Tclose));
}

}  // namespace lockstep

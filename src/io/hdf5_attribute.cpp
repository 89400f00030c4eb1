// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_attribute.h"

#include <algorithm>

namespace lockstep {

namespace {

std::string action(const char* verb, const char* name) {
  return fmt::format("{} attribute '{}'", verb, name);
}

void write_scalar(hid_t object, const char* name, hid_t file_type, hid_t memory_type, const void* value,
                  const Hdf5Context& context) {
  const std::string what = action("write", name);
  const Hdf5Handle space(hdf5_checked(H5Screate(H5S_SCALAR), context, what), H5Sclose);
  Hdf5Handle attribute(
      hdf5_checked(H5Acreate2(object, name, file_type, space.get(), H5P_DEFAULT, H5P_DEFAULT), context, what),
      H5Aclose);
  hdf5_checked(H5Awrite(attribute.get(), memory_type, value), context, what);
  hdf5_checked(attribute.close(), context, what);
}

/// A fixed-length text type, padded with zeros.
Hdf5Handle text_type(std::size_t length, const Hdf5Context& context) {
  Hdf5Handle type(hdf5_checked(H5Tcopy(H5T_C_S1), context, "create a text type"), H5Tclose);
  hdf5_checked(H5Tset_size(type.get(), length > 0 ? length : 1), context, "create a text type");
  hdf5_checked(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), context, "create a text type");
  hdf5_checked(H5Tset_cset(type.get(), H5T_CSET_UTF8), context, "create a text type");
  return type;
}

/// Opens an attribute and checks that it has one value of `type_class`.
Hdf5Handle open_scalar(hid_t object, const char* name, H5T_class_t type_class, const Hdf5Context& context) {
  const std::string what = action("read", name);
  const htri_t exists = hdf5_checked(H5Aexists(object, name), context, what);
  if (exists == 0)
    throw Error(context.kind, fmt::format("has no attribute '{}'", name), context.where, context.advice);
  Hdf5Handle attribute(hdf5_checked(H5Aopen(object, name, H5P_DEFAULT), context, what), H5Aclose);
  const Hdf5Handle space(hdf5_checked(H5Aget_space(attribute.get()), context, what), H5Sclose);
  const Hdf5Handle type(hdf5_checked(H5Aget_type(attribute.get()), context, what), H5Tclose);
  if (H5Sget_simple_extent_npoints(space.get()) != 1 || H5Tget_class(type.get()) != type_class)
    throw Error(context.kind, fmt::format("attribute '{}' is of another type than expected", name),
                context.where, context.advice);
  return attribute;
}

void read_integer(hid_t object, const char* name, hid_t memory_type, void* value,
                  const Hdf5Context& context) {
  const Hdf5Handle attribute = open_scalar(object, name, H5T_INTEGER, context);
  hdf5_checked(H5Aread(attribute.get(), memory_type, value), context, action("read", name));
}

}  // namespace

void write_attribute(hid_t object, const char* name, std::int64_t value, const Hdf5Context& context) {
  const Hdf5Lock lock;
  write_scalar(object, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value, context);
}

void write_attribute(hid_t object, const char* name, std::uint64_t value, const Hdf5Context& context) {
  const Hdf5Lock lock;
  write_scalar(object, name, H5T_STD_U64LE, H5T_NATIVE_UINT64, &value, context);
}

void write_attribute(hid_t object, const char* name, const std::string& value, const Hdf5Context& context) {
  LOCKSTEP_CHECK(value.find('\0') == std::string::npos, "attribute '{}' contains a zero character", name);
  const Hdf5Lock lock;
  const Hdf5Handle type = text_type(value.size(), context);
  write_scalar(object, name, type.get(), type.get(), value.c_str(), context);
}

void write_attribute(hid_t object, const char* name, const std::vector<std::string>& values,
                     const Hdf5Context& context) {
  const Hdf5Lock lock;
  const std::string what = action("write", name);
  std::size_t width = 1;
  for (const std::string& value : values) width = std::max(width, value.size());
  std::string block;
  for (const std::string& value : values) block += value + std::string(width - value.size(), '\0');
  const Hdf5Handle type = text_type(width, context);
  const hsize_t count = values.size();
  const Hdf5Handle space(hdf5_checked(H5Screate_simple(1, &count, nullptr), context, what), H5Sclose);
  Hdf5Handle attribute(
      hdf5_checked(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), context,
                   what),
      H5Aclose);
  hdf5_checked(H5Awrite(attribute.get(), type.get(), block.data()), context, what);
  hdf5_checked(attribute.close(), context, what);
}

void read_attribute(hid_t object, const char* name, std::int64_t& value, const Hdf5Context& context) {
  const Hdf5Lock lock;
  read_integer(object, name, H5T_NATIVE_INT64, &value, context);
}

void read_attribute(hid_t object, const char* name, std::uint64_t& value, const Hdf5Context& context) {
  const Hdf5Lock lock;
  read_integer(object, name, H5T_NATIVE_UINT64, &value, context);
}

void read_attribute(hid_t object, const char* name, std::string& value, const Hdf5Context& context) {
  const Hdf5Lock lock;
  const std::string what = action("read", name);
  const Hdf5Handle attribute = open_scalar(object, name, H5T_STRING, context);
  const Hdf5Handle stored(hdf5_checked(H5Aget_type(attribute.get()), context, what), H5Tclose);
  if (hdf5_checked(H5Tis_variable_str(stored.get()), context, what) != 0)
    throw Error(context.kind, fmt::format("attribute '{}' is a text of variable length", name), context.where,
                context.advice);
  const std::size_t length = H5Tget_size(stored.get());
  const Hdf5Handle type = text_type(length, context);
  value.assign(length, '\0');
  hdf5_checked(H5Aread(attribute.get(), type.get(), value.data()), context, what);
  value.resize(std::min(value.find('\0'), value.size()));
}

std::string text_of_attribute(hid_t attribute, const Hdf5Context& context) {
  const Hdf5Lock lock;
  const char* const what = "read an attribute";
  const Hdf5Handle type(hdf5_checked(H5Aget_type(attribute), context, what), H5Tclose);
  if (H5Tget_class(type.get()) != H5T_STRING)
    throw Error(context.kind, "an attribute is no text", context.where, context.advice);
  std::string text;
  if (H5Tis_variable_str(type.get()) > 0) {
    char* found = nullptr;
    hdf5_checked(H5Aread(attribute, type.get(), &found), context, what);
    if (found != nullptr) text = found;
    H5free_memory(found);
    return text;
  }
  text.resize(H5Tget_size(type.get()));
  hdf5_checked(H5Aread(attribute, type.get(), text.data()), context, what);
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

std::vector<std::string> text_list_attribute(hid_t object, const char* name, const Hdf5Context& context) {
  const Hdf5Lock lock;
  const std::string what = action("read", name);
  if (hdf5_checked(H5Aexists(object, name), context, what) == 0) return {};
  const Hdf5Handle attribute(hdf5_checked(H5Aopen(object, name, H5P_DEFAULT), context, what), H5Aclose);
  const Hdf5Handle space(hdf5_checked(H5Aget_space(attribute.get()), context, what), H5Sclose);
  const Hdf5Handle type(hdf5_checked(H5Aget_type(attribute.get()), context, what), H5Tclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  constexpr hssize_t kMost = 10'000'000;
  if (H5Tget_class(type.get()) != H5T_STRING || H5Sget_simple_extent_ndims(space.get()) != 1 || count < 1 ||
      count > kMost)
    return {};
  std::vector<std::string> texts(static_cast<std::size_t>(count));
  if (hdf5_checked(H5Tis_variable_str(type.get()), context, what) != 0) {
    std::vector<char*> found(texts.size(), nullptr);
    hdf5_checked(H5Aread(attribute.get(), type.get(), found.data()), context, what);
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (found[i] != nullptr) texts[i] = found[i];
    hdf5_checked(H5Dvlen_reclaim(type.get(), space.get(), H5P_DEFAULT, found.data()), context, what);
    return texts;
  }
  const std::size_t width = H5Tget_size(type.get());
  std::string block(width * texts.size(), '\0');
  hdf5_checked(H5Aread(attribute.get(), type.get(), block.data()), context, what);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i] = block.substr(i * width, width);
    texts[i].resize(std::min(texts[i].find('\0'), texts[i].size()));
  }
  return texts;
}

}  // namespace lockstep

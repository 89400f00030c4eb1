// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/netcdf_attribute.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "core/error.h"
#include "io/hdf5_attribute.h"

namespace lockstep {

using Exact = NetcdfAttribute::Exact;

NetcdfAttribute netcdf_attribute(const Hdf5Dataset& data, const char* name) {
  const Hdf5Context context = data.context();
  NetcdfAttribute found;
  if (hdf5_checked(H5Aexists(data.id.get(), name), context, "look for an attribute") == 0) return found;
  found.exists = true;
  const Hdf5Handle attribute(
      hdf5_checked(H5Aopen(data.id.get(), name, H5P_DEFAULT), context, "open an attribute"), H5Aclose);
  const Hdf5Handle type(hdf5_checked(H5Aget_type(attribute.get()), context, "read an attribute"), H5Tclose);
  const Hdf5Handle space(hdf5_checked(H5Aget_space(attribute.get()), context, "read an attribute"), H5Sclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  constexpr hssize_t kMost = 1000;
  if (count < 1 || count > kMost) return found;
  const H5T_class_t type_class = H5Tget_class(type.get());
  if (type_class == H5T_STRING && count == 1) {
    found.text = text_of_attribute(attribute.get(), context);
  } else if (type_class == H5T_INTEGER || type_class == H5T_FLOAT) {
    found.is_fraction = type_class == H5T_FLOAT;
    found.numbers.resize(static_cast<std::size_t>(count));
    hdf5_checked(H5Aread(attribute.get(), H5T_NATIVE_LDOUBLE, found.numbers.data()), context,
                 "read an attribute");
  }
  return found;
}

std::optional<Exact> number_in_text(const std::string& text) {
  const char* const begin = text.c_str();
  char* end = nullptr;
  const Exact number = std::strtold(begin, &end);
  while (end != begin && std::isspace(static_cast<unsigned char>(*end)) != 0) ++end;
  return end != begin && *end == '\0' ? std::optional(number) : std::nullopt;
}

std::optional<double> netcdf_number(const Hdf5Dataset& data, const char* name) {
  const NetcdfAttribute attribute = netcdf_attribute(data, name);
  if (!attribute.exists) return std::nullopt;
  const char* const advice = "Correct the attribute, or read the stored numbers with unpack: false.";
  std::optional<Exact> number;
  if (attribute.numbers.size() == 1) number = attribute.numbers.front();
  if (attribute.text) number = number_in_text(*attribute.text);
  if (!number || !std::isfinite(static_cast<double>(*number)))
    throw Error(ErrorKind::data,
                attribute.text
                    ? fmt::format("its attribute {} is the text '{}', which is not one finite number", name,
                                  *attribute.text)
                    : fmt::format("its attribute {} is not one finite number", name),
                data.where, advice);
  return static_cast<double>(*number);
}

bool netcdf_says(const Hdf5Dataset& data, const char* name, std::string_view text) {
  const NetcdfAttribute attribute = netcdf_attribute(data, name);
  return attribute.text && std::ranges::equal(*attribute.text, text, [](unsigned char a, unsigned char b) {
           return std::tolower(a) == static_cast<int>(b);
         });
}

}  // namespace lockstep

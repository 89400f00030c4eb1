// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/hdf5_type.h"

#include <array>
#include <cstring>
#include <vector>

#include "core/name_list.h"

namespace lockstep {

namespace {

/// The unsigned integer with the bytes of a bitfield; none unless its bits fill them.
Hdf5Handle integer_of_bits(hid_t bits) {
  const std::size_t bytes = H5Tget_size(bits);
  const bool is_whole = H5Tget_offset(bits) == 0 && H5Tget_precision(bits) == 8 * bytes;
  if (!is_whole || (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)) return {};
  const hid_t standard = bytes == 1   ? H5T_STD_U8LE
                         : bytes == 2 ? H5T_STD_U16LE
                         : bytes == 4 ? H5T_STD_U32LE
                                      : H5T_STD_U64LE;
  Hdf5Handle integer(H5Tcopy(standard), H5Tclose);
  if (H5Tset_order(integer.get(), H5Tget_order(bits)) < 0) return {};
  return integer;
}

/// A conversion of HDF5 (H5Tregister): values lie side by side, or `stride` bytes apart.
herr_t bits_to_number(hid_t from, hid_t to, H5T_cdata_t* state, std::size_t count, std::size_t stride,
                      std::size_t, void* values, void*, hid_t transfer) {
  if (state->command == H5T_CONV_FREE) return 0;
  const Hdf5Handle integer = integer_of_bits(from);
  if (integer.get() < 0) return -1;
  if (state->command == H5T_CONV_INIT) {
    state->need_bkg = H5T_BKG_NO;
    return 0;
  }
  if (stride == 0) return H5Tconvert(integer.get(), to, count, values, nullptr, transfer);
  std::array<char, 16> room{};
  const std::size_t from_bytes = H5Tget_size(from), to_bytes = H5Tget_size(to);
  if (to_bytes > room.size()) return -1;
  for (std::size_t i = 0; i < count; ++i) {
    char* const value = static_cast<char*>(values) + i * stride;
    std::memcpy(room.data(), value, from_bytes);
    if (H5Tconvert(integer.get(), to, 1, room.data(), nullptr, transfer) < 0) return -1;
    std::memcpy(value, room.data(), to_bytes);
  }
  return 0;
}

/// Names of an enumeration or of a compound type.
std::string member_names(hid_t type) {
  std::vector<std::string> names;
  const int count = H5Tget_nmembers(type);
  for (int i = 0; i < count; ++i) {
    char* const name = H5Tget_member_name(type, static_cast<unsigned>(i));
    if (name != nullptr) names.emplace_back(name);
    H5free_memory(name);
  }
  return name_list(names);
}

}  // namespace

void hdf5_register_bitfields() {
  static const bool done = [] {
    for (const hid_t number : {H5T_NATIVE_INT, H5T_NATIVE_FLOAT})
      if (H5Tregister(H5T_PERS_SOFT, "bits", H5T_NATIVE_B8, number, bits_to_number) < 0)
        H5Eclear2(H5E_DEFAULT);
    return true;
  }();
  (void)done;
}

Hdf5Handle hdf5_plain_type(hid_t type, const Hdf5Context& context) {
  const H5T_class_t type_class = H5Tget_class(type);
  if (type_class == H5T_ENUM) return {hdf5_checked(H5Tget_super(type), context, "read the type"), H5Tclose};
  if (type_class == H5T_BITFIELD)
    if (Hdf5Handle integer = integer_of_bits(type); integer.get() >= 0) return integer;
  return {hdf5_checked(H5Tcopy(type), context, "read the type"), H5Tclose};
}

std::optional<Hdf5NumberType> hdf5_number_type(hid_t type, const Hdf5Context& context) {
  const Hdf5Handle plain = hdf5_plain_type(type, context);
  Hdf5NumberType found;
  if (hdf5_dtype_of(plain.get(), found.dtype)) {
    const bool is_half = found.dtype == DType::f16 || found.dtype == DType::bf16;
    found.memory =
        is_half ? hdf5_half_type(found.dtype, context)
                : Hdf5Handle(hdf5_checked(H5Tcopy(hdf5_memory_type(found.dtype)), context, "copy a type"),
                             H5Tclose);
    return found;
  }
  const std::size_t bytes = H5Tget_size(plain.get());
  if (H5Tget_class(plain.get()) != H5T_INTEGER || (bytes != 4 && bytes != 8)) return std::nullopt;
  found.dtype = DType::i64;  // unsigned
  found.is_uint64 = bytes == 8;
  found.memory = Hdf5Handle(
      hdf5_checked(H5Tcopy(found.is_uint64 ? H5T_NATIVE_UINT64 : H5T_NATIVE_INT64), context, "copy a type"),
      H5Tclose);
  return found;
}

std::string hdf5_type_name(hid_t type) {
  const std::size_t bits = 8 * H5Tget_size(type);
  const auto name_of_base = [&] {
    const Hdf5Handle base(H5Tget_super(type), H5Tclose);
    return base.get() < 0 ? std::string("an unknown type") : hdf5_type_name(base.get());
  };
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return fmt::format("{}int{}", H5Tget_sign(type) == H5T_SGN_2 ? "" : "u", bits);
    case H5T_FLOAT:
      return fmt::format("float{}", bits);
    case H5T_STRING:
      return "texts";
    case H5T_BITFIELD:
      return fmt::format("a bitfield of {} bits", H5Tget_precision(type));
    case H5T_OPAQUE: {
      char* const tag = H5Tget_tag(type);
      std::string name = fmt::format("an opaque type of {} bytes", bits / 8);
      if (tag != nullptr && *tag != '\0') name += fmt::format(" ({})", tag);
      H5free_memory(tag);
      return name;
    }
    case H5T_COMPOUND: {
      const std::string members = member_names(type);
      const bool is_complex = members == "r, i" || members == "real, imag";
      return fmt::format("{} ({})", is_complex ? "complex numbers" : "a compound type", members);
    }
    case H5T_REFERENCE:
      return H5Tequal(type, H5T_STD_REF_DSETREG) > 0 ? "a region reference" : "an object reference";
    case H5T_ENUM:
      return fmt::format("an enumeration ({})", member_names(type));
    case H5T_VLEN:
      return fmt::format("sequences of {}", name_of_base());
    case H5T_ARRAY:
      return fmt::format("arrays of {}", name_of_base());
    case H5T_TIME:
      return "HDF5's type of times";
    default:
      return "an unknown type";
  }
}

}  // namespace lockstep

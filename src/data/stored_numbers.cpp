// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/stored_numbers.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/error.h"
#include "core/sizes.h"
#include "data/as_float.h"

namespace lockstep {

namespace {

inline std::uint16_t swapped(std::uint16_t value) { return __builtin_bswap16(value); }
inline std::uint32_t swapped(std::uint32_t value) { return __builtin_bswap32(value); }
inline std::uint64_t swapped(std::uint64_t value) { return __builtin_bswap64(value); }

template <typename T>
void swap_bytes(void* values, std::int64_t count) {
  char* at = static_cast<char*>(values);
  for (std::int64_t i = 0; i < count; ++i, at += sizeof(T)) {
    T value;
    std::memcpy(&value, at, sizeof(T));
    value = swapped(value);
    std::memcpy(at, &value, sizeof(T));
  }
}

template <typename T>
void to_last(const void* from, void* to, std::int64_t samples, std::int64_t channels,
             std::int64_t positions) {
  const char* in = static_cast<const char*>(from);
  T* out = static_cast<T*>(to);
  const auto step = static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t sample = 0; sample < samples; ++sample, in += channels * positions * step)
    for (std::int64_t position = 0; position < positions; ++position)
      for (std::int64_t channel = 0; channel < channels; ++channel)
        std::memcpy(out++, in + (channel * positions + position) * step, sizeof(T));
}

template <typename T>
void to_indices(const void* values, std::int64_t count, std::int32_t* to,
                FunctionRef<std::string(std::int64_t)> where) {
  const T* const in = static_cast<const T*>(values);
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (sizeof(T) > 4)
      if (in[i] < std::numeric_limits<std::int32_t>::min() ||
          in[i] > std::numeric_limits<std::int32_t>::max())
        throw Error(ErrorKind::data, fmt::format("label {} does not fit into 32 bits", in[i]), where(i),
                    "Labels are class numbers from 0 on.");
    to[i] = static_cast<std::int32_t>(in[i]);
  }
}

template <typename T>
void to_rows(const void* values, std::int64_t count, float* to) {
  std::transform(static_cast<const T*>(values), static_cast<const T*>(values) + count, to,
                 [](T value) { return as_float(value); });
}

}  // namespace

DType stored_type(const Params& params, const ParamSpec& option) {
  for (const DType type : {DType::u8, DType::i8, DType::u16, DType::i16, DType::i32, DType::i64, DType::f16,
                           DType::bf16, DType::f32})
    if (params.string(option.name) == name_of(type)) return type;
  return DType::f64;
}

void to_native(void* values, std::int64_t count, std::size_t value_bytes, bool big_endian) {
  if (value_bytes == 1 || big_endian == (std::endian::native == std::endian::big)) return;
  if (value_bytes == 2) return swap_bytes<std::uint16_t>(values, count);
  if (value_bytes == 4) return swap_bytes<std::uint32_t>(values, count);
  swap_bytes<std::uint64_t>(values, count);
}

void channels_to_last(std::size_t value_bytes, const void* from, void* to, std::int64_t samples,
                      std::int64_t channels, std::int64_t positions) {
  switch (value_bytes) {
    case 1:
      return to_last<std::uint8_t>(from, to, samples, channels, positions);
    case 2:
      return to_last<std::uint16_t>(from, to, samples, channels, positions);
    case 4:
      return to_last<std::uint32_t>(from, to, samples, channels, positions);
    default:
      return to_last<std::uint64_t>(from, to, samples, channels, positions);
  }
}

void convert_features(const void* bytes, const StoredType& type, std::int64_t values,
                      std::int64_t channels_first, void* to) {
  const std::size_t value_bytes = size_in_bytes(type.type);
  if (channels_first == 0)
    std::memcpy(to, bytes, static_cast<std::size_t>(values) * value_bytes);
  else
    channels_to_last(value_bytes, bytes, to, 1, channels_first, values / channels_first);
  to_native(to, values, type);
}

Shape sample_shape(std::vector<std::int64_t> extents, bool channels_first, const std::string& where) {
  const auto fail = [&](std::string what, std::string advice) {
    throw Error(ErrorKind::data, std::move(what), where, std::move(advice));
  };
  if (channels_first && extents.size() < 2)
    fail("layout channels_first needs samples of at least two axes", "Leave out the option layout.");
  if (channels_first) std::rotate(extents.begin(), extents.begin() + 1, extents.end());
  if (extents.empty()) extents.push_back(1);
  if (extents.size() >= Shape::kMaxRank)
    fail(fmt::format("its samples have {} axes; at most {} can be read", extents.size(), Shape::kMaxRank - 1),
         "Check the file.");
  if (std::ranges::find(extents, 0) != extents.end() || !product_up_to(kMaxExtentProduct, extents))
    fail(fmt::format("its samples have {:g} values", product_in_double(extents)),
         "Every sample needs at least one feature value, and not more than memory holds.");
  return Shape(std::span<const std::int64_t>(extents));
}

LabelKind label_kind_of(DType type) {
  const bool floats = type == DType::f16 || type == DType::bf16 || type == DType::f32 || type == DType::f64;
  return floats ? LabelKind::rows : LabelKind::indices;
}

void convert_labels(const void* values, DType type, std::int64_t count, const SampleRoom& to,
                    FunctionRef<std::string(std::int64_t)> where) {
  switch (type) {
    case DType::u8:
      return to_indices<std::uint8_t>(values, count, to.label_indices, where);
    case DType::i8:
      return to_indices<std::int8_t>(values, count, to.label_indices, where);
    case DType::u16:
      return to_indices<std::uint16_t>(values, count, to.label_indices, where);
    case DType::i16:
      return to_indices<std::int16_t>(values, count, to.label_indices, where);
    case DType::i32:
      return to_indices<std::int32_t>(values, count, to.label_indices, where);
    case DType::i64:
      return to_indices<std::int64_t>(values, count, to.label_indices, where);
    case DType::f16:
      return to_rows<Float16>(values, count, to.label_rows);
    case DType::bf16:
      return to_rows<BFloat16>(values, count, to.label_rows);
    case DType::f32:
      return to_rows<float>(values, count, to.label_rows);
    case DType::f64:
      return to_rows<double>(values, count, to.label_rows);
  }
  LOCKSTEP_CHECK(false, "labels of type {}", name_of(type));
}

void check_same_samples(const std::string& path, const Shape& found, DType type, const std::string& first,
                        const Shape& shape, DType wanted) {
  constexpr const char* kAdvice = "All files of a data set need samples and labels of the same form.";
  if (!(found == shape))
    throw Error(ErrorKind::data,
                fmt::format("its samples have the shape {}, but those of {} have {}", found.to_string(),
                            first, shape.to_string()),
                path, kAdvice);
  if (type != wanted)
    throw Error(
        ErrorKind::data,
        fmt::format("its values are {}, but those of {} are {}", name_of(type), first, name_of(wanted)), path,
        kAdvice);
}

SampleRoom room_after(const SampleRoom& to, std::int64_t samples, std::int64_t feature_bytes,
                      std::int64_t label_columns) {
  SampleRoom room = to;
  room.features = static_cast<char*>(to.features) + samples * feature_bytes;
  if (room.label_indices != nullptr) room.label_indices += samples * label_columns;
  if (room.label_rows != nullptr) room.label_rows += samples * label_columns;
  return room;
}

}  // namespace lockstep

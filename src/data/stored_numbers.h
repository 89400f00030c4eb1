// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers as files store them, and how they become features and labels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/option_range.h"
#include "config/params.h"
#include "core/dtype.h"
#include "core/function_ref.h"
#include "core/shape.h"
#include "data/dataset_parts.h"
#include "data/sample_store.h"

namespace lockstep {

struct StoredType {
  DType type = DType::u8;
  bool big_endian = false;
  friend bool operator==(const StoredType&, const StoredType&) = default;
};

/// The range of an option that names such a type, and its value, for option_as().
inline constexpr OptionRange kStoredTypes =
    one_of("uint8|int8|uint16|int16|int32|int64|float16|bfloat16|float32|float64");
DType stored_type(const Params& params, const ParamSpec& option);

/// Converts `count` values of `value_bytes` to the machine's byte order, in place.
void to_native(void* values, std::int64_t count, std::size_t value_bytes, bool big_endian);
inline void to_native(void* values, std::int64_t count, const StoredType& type) {
  to_native(values, count, size_in_bytes(type.type), type.big_endian);
}

/// to[sample][position][channel] = from[sample][channel][position]; `from` may have any alignment.
void channels_to_last(std::size_t value_bytes, const void* from, void* to, std::int64_t samples,
                      std::int64_t channels, std::int64_t positions);

/// The features of one sample from `bytes` as a file stores them: in the machine's byte order, channels last
/// if there are `channels_first` (0: they are last already). `bytes` may have any alignment.
void convert_features(const void* bytes, const StoredType& type, std::int64_t values,
                      std::int64_t channels_first, void* to);

/// The shape in memory of samples with these extents in a file: channels last, at least one axis. Throws
/// Error(data) at `where` if there are no channels to convert, too many axes, or an extent that is 0.
Shape sample_shape(std::vector<std::int64_t> extents, bool channels_first, const std::string& where);

/// Integers are class indices, floats are targets.
LabelKind label_kind_of(DType type);
/// Converts `count` numbers of the machine's byte order to labels: to.label_indices of integers,
/// to.label_rows of floats. Throws Error(data) at where(i) about number i if it does not fit into 32 bits.
void convert_labels(const void* values, DType type, std::int64_t count, const SampleRoom& to,
                    FunctionRef<std::string(std::int64_t)> where);

/// Throws Error(data) unless samples of shape `found` and type in `path` are those of the file `first`.
void check_same_samples(const std::string& path, const Shape& found, DType type, const std::string& first,
                        const Shape& shape, DType wanted);

/// `to` from sample `samples` on.
SampleRoom room_after(const SampleRoom& to, std::int64_t samples, std::int64_t feature_bytes,
                      std::int64_t label_columns);

}  // namespace lockstep

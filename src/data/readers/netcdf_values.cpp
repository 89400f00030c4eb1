// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/readers/netcdf_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <set>
#include <string_view>
#include <type_traits>

#include "core/log.h"
#include "core/plain_nan.h"
#include "data/as_float.h"
#include "data/readers/netcdf_attribute.h"

namespace lockstep {

namespace {

using Exact = NetcdfAttribute::Exact;
constexpr Exact kTwoTo64 = 18446744073709551616.0L;

template <typename T>
std::vector<char> bytes_of(T value) {
  std::vector<char> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

/// The default of netCDF (netcdf.h, NC_FILL_SHORT and so on) for the type in the file, as a number in memory;
/// empty for single bytes.
std::vector<char> default_fill(const Hdf5Dataset& data, DType in_memory) {
  const std::size_t bytes = H5Tget_size(data.file_type.get());
  if (data.file_class == H5T_FLOAT) {
    constexpr double kFill = 9.9692099683868690e+36;
    if (in_memory == DType::f32) return bytes_of(static_cast<float>(kFill));
    if (in_memory == DType::f64) return bytes_of(kFill);
    return {};
  }
  const bool is_signed = H5Tget_sign(data.file_type.get()) == H5T_SGN_2;
  std::int64_t fill = 0;
  if (bytes == 2) fill = is_signed ? -32767 : 65535;
  if (bytes == 4) fill = is_signed ? -2147483647 : 4294967295;
  if (bytes == 8) fill = is_signed ? -9223372036854775806 : -2;  // the bits of 2^64 - 2
  if (fill == 0) return {};
  if (in_memory == DType::i16) return bytes_of(static_cast<std::int16_t>(fill));
  if (in_memory == DType::u16) return bytes_of(static_cast<std::uint16_t>(fill));
  if (in_memory == DType::i32) return bytes_of(static_cast<std::int32_t>(fill));
  if (in_memory == DType::i64) return bytes_of(fill);
  return {};
}

bool written_by_netcdf(const Hdf5Dataset& data) {
  return hdf5_checked(H5Aexists_by_name(data.id.get(), "/", "_NCProperties", H5P_DEFAULT), data.context(),
                      "look for an attribute") > 0;
}

template <typename T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
    return as_float(value);
  else
    return static_cast<double>(value);
}

template <typename T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>)
    return from_float<T>(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

/// The bytes of a number in memory; empty: the type cannot hold it, so that no stored number is it.
/// `wrap`: above 0, stored numbers below 0 stand for those with this added; below 0, numbers below 0 are
/// stored as those with this taken away.
template <typename T>
std::vector<char> bytes_of_number(Exact number, Exact wrap) {
  if constexpr (std::is_integral_v<T>) {
    if (!(number == std::floor(number))) return {};
    if (wrap > 0 && number > static_cast<Exact>(std::numeric_limits<T>::max())) number -= wrap;
    if (wrap < 0 && number < 0) number -= wrap;
    if (number < static_cast<Exact>(std::numeric_limits<T>::lowest()) ||
        number > static_cast<Exact>(std::numeric_limits<T>::max()))
      return {};
    return bytes_of(static_cast<T>(number));
  } else {
    const auto value = from_double<T>(static_cast<double>(number));
    const bool overflows = std::isfinite(number) && !std::isfinite(as_double(value));
    return overflows ? std::vector<char>() : bytes_of(value);
  }
}

std::vector<char> bytes_of_number(DType type, Exact number, Exact wrap) {
  switch (type) {
    case DType::u8:
      return bytes_of_number<std::uint8_t>(number, wrap);
    case DType::i8:
      return bytes_of_number<std::int8_t>(number, wrap);
    case DType::u16:
      return bytes_of_number<std::uint16_t>(number, wrap);
    case DType::i16:
      return bytes_of_number<std::int16_t>(number, wrap);
    case DType::i32:
      return bytes_of_number<std::int32_t>(number, wrap);
    case DType::i64:
      return bytes_of_number<std::int64_t>(number, wrap);
    case DType::f32:
      return bytes_of_number<float>(number, wrap);
    case DType::f64:
      return bytes_of_number<double>(number, wrap);
    case DType::bf16:
      return bytes_of_number<BFloat16>(number, wrap);
    case DType::f16:
      return bytes_of_number<Float16>(number, wrap);
  }
  return {};
}

/// A warning that is given once for each dataset of each file.
void warn_once(const std::string& text) {
  static auto* const said = new std::set<std::string>;  // guarded by the Hdf5Lock
  if (said->insert(text).second) log_warning("{}", text);
}

/// The stored numbers that an attribute calls missing.
std::vector<char> missing_by(const Hdf5Dataset& data, const char* name, DType stored, Exact wrap) {
  const NetcdfAttribute attribute = netcdf_attribute(data, name);
  std::vector<Exact> numbers = attribute.numbers;
  if (attribute.text) {
    const std::optional<Exact> number = number_in_text(*attribute.text);
    if (number)
      numbers.push_back(*number);
    else if (data.file_class != H5T_STRING)
      warn_once(
          fmt::format("{}: its attribute {} is the text '{}', which is no number: no value is missing by it",
                      data.where, name, *attribute.text));
  }
  std::vector<char> all;
  for (const Exact number : numbers) {
    const std::vector<char> bytes = bytes_of_number(stored, number, wrap);
    all.insert(all.end(), bytes.begin(), bytes.end());
    if (bytes.empty())
      warn_once(fmt::format("{}: its attribute {} is {}, which {} cannot hold: no value is missing by it",
                            data.where, name, plain_nan(static_cast<double>(number)), name_of(stored)));
  }
  return all;
}

[[noreturn]] void fail_too_large(std::uint64_t number, const std::string& where) {
  throw Error(ErrorKind::data,
              fmt::format("{} does not fit into int64, whose largest number is {}", number,
                          std::numeric_limits<std::int64_t>::max()),
              where, "Store such numbers as float64: data.astype('float64') in NumPy.");
}

}  // namespace

NetcdfValues::NetcdfValues(const Hdf5Dataset& data, const Hdf5NumberType& number,
                           const NetcdfOptions& options)
    : NetcdfValues(data.name, number) {
  fill_ = options.fill;
  const DType stored = stored_;
  const std::size_t file_bytes = H5Tget_size(data.file_type.get());
  const bool is_signed = data.file_class == H5T_INTEGER && H5Tget_sign(data.file_type.get()) == H5T_SGN_2;
  if (options.unpack && data.file_class == H5T_INTEGER &&
      netcdf_says(data, "_Unsigned", is_signed ? "true" : "false")) {
    if (file_bytes < sizeof(std::int64_t))
      wrap_ = (is_signed ? 1 : -1) * static_cast<double>(std::uint64_t{1} << (8 * file_bytes));
    else
      is_uint64_ = is_signed;
  }
  std::vector<char> fills;
  for (const char* const name : {"_FillValue", "missing_value"}) {
    const std::vector<char> more = missing_by(data, name, stored, is_uint64_ ? kTwoTo64 : wrap_);
    fills.insert(fills.end(), more.begin(), more.end());
  }
  if (H5Aexists(data.id.get(), "_FillValue") <= 0 && written_by_netcdf(data)) {
    const std::vector<char> more = default_fill(data, stored);
    fills.insert(fills.end(), more.begin(), more.end());
  }
  const std::size_t bytes = size_in_bytes(stored);
  for (std::size_t at = 0; at < fills.size(); at += bytes) {
    const std::string fill(fills.data() + at, bytes);
    if (std::find(fills_.begin(), fills_.end(), fill) == fills_.end()) fills_.push_back(fill);
  }
  if (options.unpack) {
    const std::optional<double> scale = netcdf_number(data, "scale_factor"),
                                offset = netcdf_number(data, "add_offset");
    scaled_ = scale || offset;
    scale_ = scale.value_or(1);
    offset_ = offset.value_or(0);
  }
  valid_ = valid_of(data);
  const DType to = type();
  const bool whole = to != DType::f32 && to != DType::f64 && to != DType::f16 && to != DType::bf16;
  are_classes_ = options.are_labels && whole;
  if (are_classes_) fill_ = std::nullopt;
  if (fill_ && !fills_.empty()) {
    if (whole && *fill_ != std::floor(*fill_))
      throw Error(ErrorKind::config, fmt::format("fill is {}, but its values are {}", *fill_, name_of(to)),
                  data.where, "Give a whole number.");
    double least = -9.2e18, most = 9.2e18;
    if (to == DType::u8) least = 0, most = 255;
    if (to == DType::i8) least = -128, most = 127;
    if (to == DType::u16) least = 0, most = 65535;
    if (to == DType::i16) least = -32768, most = 32767;
    if (to == DType::i32) least = -2147483648.0, most = 2147483647;
    if (whole && (*fill_ < least || *fill_ > most))
      throw Error(ErrorKind::config, fmt::format("fill is {}, but its values are {}", *fill_, name_of(to)),
                  data.where, fmt::format("Give a number from {} to {}.", least, most));
  }
}

std::shared_ptr<NetcdfValues::Valid> NetcdfValues::valid_of(const Hdf5Dataset& data) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const NetcdfAttribute range = netcdf_attribute(data, "valid_range"),
                        least = netcdf_attribute(data, "valid_min"),
                        most = netcdf_attribute(data, "valid_max");
  auto valid = std::make_shared<Valid>();
  valid->least = -kInfinity, valid->most = kInfinity;
  if (range.numbers.size() == 2)
    valid->least = static_cast<double>(range.numbers[0]), valid->most = static_cast<double>(range.numbers[1]);
  if (least.numbers.size() == 1) valid->least = static_cast<double>(least.numbers[0]);
  if (most.numbers.size() == 1) valid->most = static_cast<double>(most.numbers[0]);
  if (!(valid->least <= valid->most) || (valid->least == -kInfinity && valid->most == kInfinity))
    return nullptr;
  // Of the type of the scale, and no whole number as the stored ones are: in the units of values.
  valid->of_values = scaled_ && data.file_class == H5T_INTEGER &&
                     (range.is_fraction || least.is_fraction || most.is_fraction);
  valid->text = fmt::format("{} [{:g}, {:g}]", range.exists ? "valid_range" : "valid_min and valid_max",
                            valid->least, valid->most);
  return valid;
}

void NetcdfValues::check_valid(double stored, FunctionRef<std::string()> where) const {
  const double number = valid_->of_values ? stored * scale_ + offset_ : stored;
  if (!(number < valid_->least || number > valid_->most) || valid_->said.exchange(true)) return;
  static std::mutex mutex;
  static auto* const names = new std::set<std::string>;  // that were warned about, in any file
  const std::lock_guard lock(mutex);
  if (!names->insert(name_).second) return;
  log_warning(
      "{}: {:g} is beyond the {} of {}: such values are taken as they are (xarray does so, too; "
      "netCDF4-python "
      "takes them for missing)",
      where(), number, valid_->text, name_);
}

DType NetcdfValues::type() const {
  if (scaled_) return DType::f32;
  if (wrap_ == 0) return stored_;
  if (wrap_ < 0) return stored_ == DType::u8 ? DType::i8 : stored_ == DType::u16 ? DType::i16 : DType::i64;
  return stored_ == DType::i8 ? DType::u8 : stored_ == DType::i16 ? DType::u16 : DType::i64;
}

template <typename Stored, typename Value>
void NetcdfValues::decode_as(const void* stored, std::int64_t count, void* values,
                             FunctionRef<std::string(std::int64_t i)> where) const {
  const Stored* const in = static_cast<const Stored*>(stored);
  Value* const out = static_cast<Value*>(values);
  const auto meaning = [&](Stored value) {
    if constexpr (std::is_same_v<Stored, Value>) {
      if (!scaled_ && wrap_ == 0) return value;
    }
    double number = as_double(value);
    if constexpr (std::is_same_v<Stored, std::int64_t>) {
      if (is_uint64_) number = static_cast<double>(static_cast<std::uint64_t>(value));
    }
    return from_double<Value>(meant(number) * scale_ + offset_);
  };
  std::vector<Stored> missing;
  bool nan = false;
  for (const std::string& fill : fills_) {
    Stored value;
    std::memcpy(&value, fill.data(), sizeof value);
    missing.push_back(value);
    if constexpr (!std::is_integral_v<Stored>) nan = nan || std::isnan(as_double(value));
  }
  const auto is_missing = [&](Stored value) {
    for (const Stored fill : missing)
      if (std::memcmp(&value, &fill, sizeof value) == 0) return true;
    if constexpr (!std::is_integral_v<Stored>) return nan && std::isnan(as_double(value));
    return false;
  };
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_missing(in[i])) [[unlikely]] {
      if (!fill_)
        throw Error(ErrorKind::data,
                    fmt::format("a value of {} is missing: it is the fill value {}", name_,
                                plain_nan(is_uint64_ && as_double(in[i]) < 0
                                              ? as_double(in[i]) + static_cast<double>(kTwoTo64)
                                              : meant(as_double(in[i])))),
                    where(i),
                    are_classes_ ? "A class is never filled in: leave such records out, with "
                                   "bad_records: skip or rows."
                                 : "Leave such records out, or give a value to take instead: fill: 0.");
      out[i] = from_double<Value>(*fill_);
    } else {
      if constexpr (std::is_same_v<Stored, std::int64_t>) {
        if (is_uint64_ && !scaled_ && in[i] < 0) [[unlikely]]
          fail_too_large(static_cast<std::uint64_t>(in[i]), where(i));
      }
      if (valid_) [[unlikely]]
        check_valid(meant(as_double(in[i])), [&] { return where(i); });
      out[i] = meaning(in[i]);
    }
  }
}

template <typename Stored>
void NetcdfValues::decode_from(const void* stored, std::int64_t count, void* values,
                               FunctionRef<std::string(std::int64_t i)> where) const {
  if (scaled_) return decode_as<Stored, float>(stored, count, values, where);
  if constexpr (std::is_same_v<Stored, std::int8_t>) {
    if (wrap_ > 0) return decode_as<Stored, std::uint8_t>(stored, count, values, where);
  }
  if constexpr (std::is_same_v<Stored, std::int16_t>) {
    if (wrap_ > 0) return decode_as<Stored, std::uint16_t>(stored, count, values, where);
  }
  if constexpr (std::is_same_v<Stored, std::int32_t>) {
    if (wrap_ > 0) return decode_as<Stored, std::int64_t>(stored, count, values, where);
  }
  if constexpr (std::is_same_v<Stored, std::uint8_t>) {
    if (wrap_ < 0) return decode_as<Stored, std::int8_t>(stored, count, values, where);
  }
  if constexpr (std::is_same_v<Stored, std::uint16_t>) {
    if (wrap_ < 0) return decode_as<Stored, std::int16_t>(stored, count, values, where);
  }
  decode_as<Stored, Stored>(stored, count, values, where);
}

void NetcdfValues::decode(const void* stored, std::int64_t count, void* values,
                          FunctionRef<std::string(std::int64_t i)> where) const {
  switch (stored_) {
    case DType::u8:
      return decode_from<std::uint8_t>(stored, count, values, where);
    case DType::i8:
      return decode_from<std::int8_t>(stored, count, values, where);
    case DType::u16:
      return decode_from<std::uint16_t>(stored, count, values, where);
    case DType::i16:
      return decode_from<std::int16_t>(stored, count, values, where);
    case DType::i32:
      return decode_from<std::int32_t>(stored, count, values, where);
    case DType::i64:
      return decode_from<std::int64_t>(stored, count, values, where);
    case DType::f32:
      return decode_from<float>(stored, count, values, where);
    case DType::f64:
      return decode_from<double>(stored, count, values, where);
    case DType::bf16:
      return decode_from<BFloat16>(stored, count, values, where);
    case DType::f16:
      return decode_from<Float16>(stored, count, values, where);
  }
}

std::string NetcdfValues::text() const {
  std::string text;
  if (scaled_) text = fmt::format("value = stored * {} + {}", scale_, offset_);
  if (wrap_ != 0)
    text +=
        fmt::format("{}stored numbers are {}", text.empty() ? "" : "; ", wrap_ > 0 ? "unsigned" : "signed");
  if (!fills_.empty())
    text += fmt::format("{}missing values are {}", text.empty() ? "" : "; ",
                        fill_ ? fmt::format("replaced by {}", *fill_) : "errors");
  return text;
}

}  // namespace lockstep

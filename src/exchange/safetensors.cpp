// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "exchange/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_set>
#include <vector>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/input_budget.h"
#include "io/json.h"

namespace lockstep {

static_assert(std::endian::native == std::endian::little, "data are written and read as they are in memory");

namespace {

constexpr std::size_t kLengthBytes = 8;
constexpr std::string_view kMetadata = "__metadata__";

constexpr std::pair<DType, std::string_view> kNames[] = {
    {DType::f32, "F32"}, {DType::f64, "F64"}, {DType::bf16, "BF16"}, {DType::f16, "F16"},
    {DType::i32, "I32"}, {DType::i64, "I64"}, {DType::u8, "U8"},     {DType::i8, "I8"},
    {DType::i16, "I16"}, {DType::u16, "U16"}};

std::string_view name_in_file(DType type) {
  return std::ranges::find(kNames, type, &std::pair<DType, std::string_view>::first)->second;
}

Error damaged(const std::string& path, std::string what) {
  return Error(ErrorKind::data, fmt::format("is not a safetensors file that can be read: {}", what), path,
               "Write the file again, with the safetensors library or `lockstep export`.");
}

/// A whole number of the header from 0 on.
std::int64_t count_of(const Json& value, const std::string& path, const std::string& what) {
  if (!value.is_unsigned() ||
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw damaged(path, what + " is not a whole number from 0 on");
  return value.get<std::int64_t>();
}

/// Looks for a name that occurs twice in an object, of which a value would hold the last one alone, and
/// counts the memory of the value.
class HeaderCheck final : public JsonEvents {
 public:
  explicit HeaderCheck(InputBudget& budget) : budget_(budget) {}

  bool null() override { return value(); }
  bool boolean(bool) override { return value(); }
  bool integer(std::int64_t) override { return value(); }
  bool unsigned_integer(std::uint64_t) override { return value(); }
  bool real(double) override { return value(); }
  bool string(std::string& text) override { return value(text.size()); }
  bool begin_array() override { return value(); }
  bool begin_object() override {
    names_.emplace_back();
    return value();
  }
  bool end_object() override {
    names_.pop_back();
    return true;
  }
  bool key(std::string& name) override {
    value(sizeof(Json::Member) + 2 * name.size());
    if (!names_.back().insert(name).second) twice_ = name;
    return true;
  }
  const std::optional<std::string>& twice() const { return twice_; }

 private:
  bool value(std::size_t more = 0) {
    budget_.take(sizeof(Json) + more);
    return true;
  }

  InputBudget& budget_;
  std::vector<std::unordered_set<std::string>> names_;
  std::optional<std::string> twice_;
};

/// Parses the header; a name that occurs twice is an error.
Json parsed(std::string_view text, InputBudget& budget, const std::string& path) {
  HeaderCheck check(budget);
  try {
    read_json(text, check);
  } catch (const JsonError&) {
    throw damaged(path, "its header is not a JSON object");
  }
  if (check.twice()) throw damaged(path, fmt::format("the name '{}' occurs twice", *check.twice()));
  return Json::parse_or_null(text);
}

struct Place {
  std::int64_t begin, end;
  std::size_t tensor;
};

/// The tensor without its bytes; its place in the data is appended to `places`.
ForeignTensor tensor_of(const std::string& name, const Json& entry, const std::string& path,
                        std::vector<Place>& places) {
  const std::string what = fmt::format("tensor '{}'", name);
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets") || !entry["dtype"].is_string() || !entry["shape"].is_array() ||
      !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2)
    throw damaged(path, what + " does not have exactly dtype, shape and data_offsets");
  ForeignTensor tensor;
  tensor.name = name;
  const std::string type = entry["dtype"].get<std::string>();
  const auto known = std::ranges::find(kNames, type, &std::pair<DType, std::string_view>::second);
  if (known == std::end(kNames)) throw damaged(path, fmt::format("{} has the dtype '{}'", what, type));
  tensor.dtype = known->first;
  for (const Json& extent : entry["shape"])
    tensor.extents.push_back(count_of(extent, path, what + ": an extent"));
  check_extents(tensor, path);
  auto bytes = static_cast<std::int64_t>(size_in_bytes(tensor.dtype));
  for (const std::int64_t extent : tensor.extents)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) throw damaged(path, what + " is too large");
  const Json& offsets = entry["data_offsets"];
  const Place place{count_of(offsets[0], path, what + ": an offset"),
                    count_of(offsets[1], path, what + ": an offset"), places.size()};
  if (place.end < place.begin || place.end - place.begin != bytes)
    throw damaged(path, fmt::format("{} has {} bytes by its shape and not those of [{}, {})", what, bytes,
                                    place.begin, place.end));
  places.push_back(place);
  return tensor;
}

/// Places cover the data without holes, and none overlap.
void check_places(std::vector<Place> places, std::int64_t size, const ForeignFile& file,
                  const std::string& path) {
  std::ranges::sort(places, {}, [](const Place& place) { return std::pair(place.begin, place.end); });
  std::int64_t next = 0;
  for (const Place& place : places) {
    const std::string& name = file.tensors[place.tensor].name;
    if (place.begin != next)
      throw damaged(path, fmt::format("tensor '{}' {}", name,
                                      place.begin < next ? "overlaps another one" : "follows unused bytes"));
    if (place.end > size)
      throw damaged(path,
                    fmt::format("tensor '{}' ends at byte {} of {} bytes of data", name, place.end, size));
    next = place.end;
  }
  if (next != size) throw damaged(path, fmt::format("{} bytes follow the last tensor", size - next));
}

}  // namespace

std::string safetensors_header(std::span<const ForeignTensor> tensors,
                               std::span<const std::pair<std::string, std::string>> metadata) {
  Json header = Json::object();
  if (!metadata.empty()) {
    Json texts = Json::object();
    for (const auto& [name, text] : metadata) texts[name] = text;
    header[std::string(kMetadata)] = std::move(texts);
  }
  std::size_t begin = 0;
  for (const ForeignTensor& tensor : tensors) {
    LOCKSTEP_CHECK(!header.contains(tensor.name), "two tensors are named '{}'", tensor.name);
    header[tensor.name] = {{"dtype", name_in_file(tensor.dtype)},
                           {"shape", tensor.extents},
                           {"data_offsets", {begin, begin + tensor.bytes.size()}}};
    begin += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + kLengthBytes - 1) / kLengthBytes * kLengthBytes, ' ');
  const std::uint64_t length = text.size();
  std::string result(kLengthBytes, '\0');
  std::memcpy(result.data(), &length, kLengthBytes);
  return result + text;
}

ForeignFile safetensors_from(std::string_view contents, const std::string& path) {
  if (contents.size() < kLengthBytes) throw damaged(path, "it is shorter than 8 bytes");
  std::uint64_t length = 0;
  std::memcpy(&length, contents.data(), kLengthBytes);
  if (length > kMostSafetensorsHeaderBytes)
    throw damaged(
        path, fmt::format("its header of {} bytes is longer than {}", length, kMostSafetensorsHeaderBytes));
  if (length > contents.size() - kLengthBytes)
    throw damaged(path, fmt::format("its header of {} bytes is longer than the file", length));
  const std::string_view text = contents.substr(kLengthBytes, length);
  const std::string_view data = contents.substr(kLengthBytes + length);
  if (!text.starts_with('{')) throw damaged(path, "its header is not a JSON object");
  InputBudget budget(path, contents.size());
  const Json header = parsed(text, budget, path);
  if (!header.is_object()) throw damaged(path, "its header is not a JSON object");
  ForeignFile file;
  std::vector<Place> places;
  for (const auto& [name, entry] : header.items()) {
    if (name != kMetadata) {
      file.tensors.push_back(tensor_of(name, entry, path, places));
      continue;
    }
    if (!entry.is_object()) throw damaged(path, "__metadata__ is not a map");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) throw damaged(path, fmt::format("__metadata__ of '{}' is not a text", key));
      file.metadata.emplace_back(key, value.get<std::string>());
    }
  }
  check_places(places, static_cast<std::int64_t>(data.size()), file, path);
  for (const Place& place : places) {
    const auto* const first = reinterpret_cast<const std::byte*>(data.data());
    file.tensors[place.tensor].bytes.assign(first + place.begin, first + place.end);
  }
  return file;
}

ForeignFile read_safetensors(const std::string& path) {
  return safetensors_from(read_whole_file(path, ErrorKind::data), path);
}

}  // namespace lockstep

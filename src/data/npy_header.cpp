// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "data/npy_header.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/error.h"
#include "core/sizes.h"

namespace lockstep {

namespace {

/// NumPy writes less than 64 KiB unless there are thousands of fields.
constexpr std::uint32_t kMostHeaderBytes = 1U << 20;

using Values = NpyHeader::Values;

struct TypeCode {
  std::string_view code;
  DType type;
  Values values = Values::numbers;
};
constexpr TypeCode kTypeCodes[] = {{"b1", DType::u8},
                                   {"u1", DType::u8},
                                   {"i1", DType::i8},
                                   {"u2", DType::u16},
                                   {"i2", DType::i16},
                                   {"i4", DType::i32},
                                   {"i8", DType::i64},
                                   {"f2", DType::f16},
                                   {"f4", DType::f32},
                                   {"f8", DType::f64},
                                   {"u4", DType::i64, Values::uint32},
                                   {"u8", DType::i64, Values::uint64}};

/// Types that are no numbers or texts of samples, by the letter of their code.
struct OtherType {
  std::string_view letters, what, advice;
};
constexpr OtherType kOtherTypes[] = {
    {"O", "holds Python objects, which are pickled",
     "Save numbers, array.astype('float32'), or names of classes, array.astype(str)."},
    {"c", "holds complex numbers",
     "Save their parts as two features: numpy.stack([array.real, array.imag], -1).astype('f4')."},
    {"Mm", "holds dates or times",
     "Save numbers, such as (array - array.min()) / numpy.timedelta64(1, 's')."},
    {"V", "holds raw bytes without a type", "Save the array with the type of its numbers: array.view('f4')."},
    {"fg", "holds floating-point numbers of this machine's longest type", "Save array.astype('f8')."}};

/// A Python dictionary of literals, read from front to back.
class Parser {
 public:
  Parser(std::string_view text, std::int64_t offset, const std::string& where)
      : text_(text), offset_(offset), where_(where) {}

  NpyHeader header() {
    expect('{');
    while (!accept('}')) {
      const std::size_t at = position();
      const std::string_view key = string();
      expect(':');
      if (key == "descr" && header_.descr.empty())
        read_type();
      else if (key == "fortran_order" && !fortran_)
        fortran_ = boolean();
      else if (key == "shape" && !extents_)
        extents_ = shape();
      else
        fail(at, fmt::format("the header has a key '{}' that is unknown or was there before", key));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) fail(at_, "the header goes on after its end");
    if (header_.descr.empty() || !fortran_ || !extents_)
      fail(at_, "the header lacks descr, fortran_order or shape");
    return finished();
  }

 private:
  NpyHeader finished() {
    header_.extents = *extents_;
    if (extents_->empty())
      throw Error(ErrorKind::data, "holds one number (shape ()), not an array of samples", where_,
                  "The first axis of an array counts samples.");
    const bool has_order =
        std::ranges::count_if(*extents_, [](std::int64_t extent) { return extent > 1; }) > 1;
    header_.fortran_order = *fortran_ && has_order;
    const std::span<const std::int64_t> extents(*extents_);
    const std::int64_t most = kMaxExtentProduct / std::max<std::int64_t>(header_.value_bytes / 8, 1);
    if (!product_up_to(most, extents) || !product_up_to(most, extents.subspan(1)))
      throw Error(ErrorKind::data,
                  fmt::format("its header announces {:g} values", product_in_double(*extents_)), where_,
                  "The file is damaged.");
    return std::move(header_);
  }

  [[noreturn]] void fail(std::size_t at, std::string what) const {
    throw Error(ErrorKind::data, std::move(what),
                fmt::format("{}, byte {}", where_, offset_ + static_cast<std::int64_t>(at)),
                "The file is damaged, or is not an array of numbers that numpy.save wrote.");
  }

  void skip_spaces() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  std::size_t position() {
    skip_spaces();
    return at_;
  }
  bool accept(char wanted) {
    if (position() == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) fail(at_, fmt::format("the header has no '{}' here", wanted));
  }

  std::string_view string() {
    const char quote = position() < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"') fail(at_, "the header has no string in quotes here");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail(at_, "the header has a string without an end");
    const std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return text;
  }

  bool boolean() {
    position();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (!text_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      return value;
    }
    fail(at_, "the header has no True or False here");
  }

  void read_type() {
    const std::size_t at = position();
    if (at < text_.size() && text_[at] == '[')
      throw Error(ErrorKind::data, "is an array of structures", where_,
                  "Save each field as an array of its own.");
    const std::string_view code = string();
    header_.descr = code;
    const bool has_order =
        code.size() > 1 && std::string_view("<>|=").find(code[0]) != std::string_view::npos;
    const std::string_view kind = code.substr(std::min<std::size_t>(has_order ? 1 : 0, code.size()));
    if (has_order && (kind[0] == 'S' || kind[0] == 'U')) return read_text_type(code, at);
    const auto known = std::ranges::find(kTypeCodes, kind, &TypeCode::code);
    if (known == std::end(kTypeCodes) || !has_order) fail_type(code, kind, at);
    header_.values = known->values;
    header_.value_bytes = kind[1] - '0';
    const bool one_byte = header_.value_bytes == 1;
    if (code[0] == '=' || (code[0] == '|' && !one_byte))
      fail(at, fmt::format("the type '{}' has no byte order", code));
    header_.type = {known->type, code[0] == '>' && !one_byte};
  }

  /// "<U5": five characters of four bytes; "|S5": five bytes.
  void read_text_type(std::string_view code, std::size_t at) {
    constexpr std::int64_t kMostLength = std::int64_t{1} << 24;
    std::int64_t length = 0;
    const auto [end, failed] = std::from_chars(code.data() + 2, code.data() + code.size(), length);
    if (failed != std::errc{} || end != code.data() + code.size() || length < 0 || length > kMostLength)
      fail(at, fmt::format("the type '{}' has no length of texts", code));
    header_.values = code[1] == 'S' ? Values::bytes : Values::characters;
    header_.value_bytes = length * (code[1] == 'S' ? 1 : 4);
    header_.type = {DType::u8, code[0] == '>'};
  }

  [[noreturn]] void fail_type(std::string_view code, std::string_view kind, std::size_t at) const {
    const std::string place = fmt::format("{}, byte {}", where_, offset_ + static_cast<std::int64_t>(at));
    for (const OtherType& other : kOtherTypes)
      if (!kind.empty() && other.letters.find(kind[0]) != std::string_view::npos)
        throw Error(ErrorKind::data, fmt::format("{} (type '{}')", other.what, code), place,
                    std::string(other.advice));
    throw Error(
        ErrorKind::data, fmt::format("has values of type '{}', which cannot be read", code), place,
        "Save bool, int8 to int64, uint8 to uint64, float16, float32 or float64: array.astype('f4').");
  }

  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (!accept(')')) {
      std::int64_t extent = 0;
      const char* const begin = text_.data() + position();
      const auto [end, code] = std::from_chars(begin, text_.data() + text_.size(), extent);
      if (code != std::errc{} || extent < 0) fail(at_, "the header has no extent here");
      at_ += static_cast<std::size_t>(end - begin);
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2
      extents.push_back(extent);
      if (!accept(',')) {
        if (extents.size() == 1) fail(at_, "the shape is no tuple");
        expect(')');
        break;
      }
    }
    return extents;
  }

  const std::string_view text_;
  const std::int64_t offset_;
  const std::string& where_;
  std::size_t at_ = 0;
  NpyHeader header_;
  std::optional<bool> fortran_;
  std::optional<std::vector<std::int64_t>> extents_;
};

}  // namespace

std::int64_t NpyHeader::values_per_row() const {
  std::int64_t product = 1;
  for (std::size_t axis = 1; axis < extents.size(); ++axis) product *= extents[axis];
  return product;
}

std::string NpyHeader::shape_text() const {
  return fmt::format("({}{})", fmt::join(extents, ", "), extents.size() == 1 ? "," : "");
}

NpyHeader parse_npy_header(std::string_view text, std::int64_t offset, const std::string& where) {
  return Parser(text, offset, where).header();
}

NpyHeader read_npy_header(ByteSource& source) {
  constexpr std::string_view kMagic = "\x93NUMPY";
  std::array<unsigned char, 12> start{};
  const std::size_t got = source.read_some(0, start.data(), start.size());
  if (got == 0)
    throw Error(ErrorKind::data, "the file is empty", source.where(),
                "Check the path; an empty file may be a failed download.");
  if (got < 10 || std::string_view(reinterpret_cast<const char*>(start.data()), 6) != kMagic)
    throw Error(
        ErrorKind::data, "is not a .npy file: it does not begin with 93 4e 55 4d 50 59", source.where(),
        got > 1 && start[0] == 'P' && start[1] == 'K'
            ? "It is a .npz file: name it in the option path, and its arrays in features and labels."
        : got > 1 && start[0] == 0x80 && start[1] >= 2 && start[1] <= 5
            ? "It is a pickle of Python, which is never executed: load it there, and write the array by "
              "numpy.save."
            : "Give a file that numpy.save wrote.");
  if (start[6] < 1 || start[6] > 3 || start[7] != 0)
    throw Error(ErrorKind::data,
                fmt::format("is of version {}.{}; 1.0 to 3.0 can be read", start[6], start[7]),
                fmt::format("{}, byte 6", source.where()), "Save it again by numpy.save.");
  const std::size_t text_at = start[6] == 1 ? 10 : 12;
  std::uint32_t length = start[8] | std::uint32_t{start[9]} << 8;
  if (start[6] > 1) length |= std::uint32_t{start[10]} << 16 | std::uint32_t{start[11]} << 24;
  if (length > kMostHeaderBytes || (text_at == 12 && got < 12))
    throw Error(ErrorKind::data, fmt::format("its header announces {} bytes for itself", length),
                fmt::format("{}, byte 8", source.where()), "The file is damaged.");
  std::string text(length, ' ');
  source.read(static_cast<std::int64_t>(text_at), text.data(), text.size());
  NpyHeader header = parse_npy_header(text, static_cast<std::int64_t>(text_at), source.where());
  header.data_offset = static_cast<std::int64_t>(text_at + length);
  return header;
}

}  // namespace lockstep

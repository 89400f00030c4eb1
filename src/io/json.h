// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Internal: a value of JSON (RFC 8259). JSON for Modern C++ reads texts and writes numbers and strings; its
// header costs seconds of each file that includes it, so only json.cpp does.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

namespace lockstep {

/// A text is no JSON, or a value is not what it should be.
class JsonError : public std::runtime_error {
 public:
  explicit JsonError(const std::string& what, std::size_t position = 0)
      : std::runtime_error(what), position_(position) {}
  /// The byte of the text at which reading ended, from 1; 0: the error is not one of the text.
  std::size_t position() const { return position_; }

 private:
  std::size_t position_;
};

/// null, a boolean, a number, a string, an array, or an object whose members stay in the order in which they
/// were written.
///
/// A braced list is an object if each of its items is a list of a string and a value, and else an array:
///
///     Json json = {{"step", 10}, {"shape", {28, 28}}};
///     json["loss"] = 0.5;
class Json {
 public:
  struct Member;

  Json();
  Json(std::nullptr_t);
  template <typename T>
  requires std::is_arithmetic_v<T> Json(T value);
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  template <typename T>
  Json(const std::vector<T>& items) : Json(std::span<const T>(items)) {}
  template <typename T>
  Json(std::span<T> items) : Json(array()) {
    for (const T& item : items) push_back(item);
  }
  Json(std::initializer_list<Json> items);
  Json(const Json& other);
  Json(Json&& other) noexcept;
  Json& operator=(const Json& other);
  Json& operator=(Json&& other) noexcept;
  ~Json();

  static Json array();
  static Json object();

  /// Throws JsonError if `text` is not one value and nothing else. Of members with the same name the last one
  /// counts.
  static Json parse(std::string_view text);
  /// As parse(), but null for a text that is no JSON.
  static Json parse_or_null(std::string_view text);

  /// The text. `indent`: blanks of a level; -1: one line. Bytes that are not UTF-8 become U+FFFD; NaN and
  /// infinities become null. `ascii`: other characters are written as \uXXXX.
  std::string dump(int indent = -1, bool ascii = false) const;

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_number() const;
  bool is_integer() const;
  /// A whole number from 0 on, in a text that was read.
  bool is_unsigned() const { return std::holds_alternative<std::uint64_t>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const;
  bool is_object() const;

  /// The value as a bool, number, std::string, or std::vector of these. Numbers are converted. Throws
  /// JsonError for a value of another kind.
  template <typename T>
  T get() const {
    if constexpr (std::is_same_v<T, Json>)
      return *this;
    else if constexpr (std::is_same_v<T, bool>)
      return boolean();
    else if constexpr (std::is_arithmetic_v<T>)
      return std::visit([](auto number) { return static_cast<T>(number); }, number());
    else if constexpr (std::is_same_v<T, std::string>)
      return string();
    else
      return elements<typename T::value_type>();
  }
  const std::string& string() const;

  /// Elements of an array, or members of an object; 0 for other values.
  std::size_t size() const;
  bool empty() const { return size() == 0; }

  /// Elements of an array. Other values have none.
  Json* begin();
  Json* end();
  const Json* begin() const;
  const Json* end() const;
  Json& back() { return *(end() - 1); }
  Json& operator[](std::size_t index);
  const Json& operator[](std::size_t index) const;
  /// Null becomes an array first.
  void push_back(Json item);

  /// Members of an object, in order. Other values have none.
  std::span<const Member> items() const;
  bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// nullptr: there is no such member.
  const Json* find(std::string_view name) const;
  /// Throws JsonError if there is no such member.
  const Json& at(std::string_view name) const;
  /// null if there is no such member.
  const Json& operator[](std::string_view name) const;
  /// A member that is missing is appended. Null becomes an object first.
  Json& operator[](std::string_view name);
  template <typename T>
  T value(std::string_view name, T fallback) const {
    const Json* const found = find(name);
    return found == nullptr ? fallback : found->get<T>();
  }
  void erase(std::string_view name);
  /// Sets the members of another object.
  void update(const Json& object);

  friend bool operator==(const Json& a, const Json& b) { return a.equals(b); }

 private:
  friend class JsonBuilder;
  using Number = std::variant<std::int64_t, std::uint64_t, double>;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  bool boolean() const;
  Number number() const;
  bool equals(const Json& other) const;
  const char* kind() const;
  void write(std::string& out, int indent, int level, bool ascii) const;
  template <typename T>
  std::vector<T> elements() const {
    if (!is_array()) throw wrong_kind("array");
    std::vector<T> found;
    found.reserve(size());
    for (const Json& item : *this) found.push_back(item.get<T>());
    return found;
  }
  JsonError wrong_kind(const char* wanted) const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  std::string name;
  Json value;
};

template <typename T>
requires std::is_arithmetic_v<T> Json::Json(T value) {
  if constexpr (std::same_as<T, bool>)
    value_ = value;
  else if constexpr (std::floating_point<T>)
    value_ = static_cast<double>(value);
  else if constexpr (std::is_signed_v<T>)
    value_ = static_cast<std::int64_t>(value);
  else
    value_ = static_cast<std::uint64_t>(value);
}

/// What a reader does at each token of a text, for texts that are not to become values first. A function that
/// returns false ends reading.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;
  virtual bool null() { return true; }
  virtual bool boolean(bool) { return true; }
  virtual bool integer(std::int64_t) { return true; }            ///< below 0
  virtual bool unsigned_integer(std::uint64_t) { return true; }  ///< from 0 on
  virtual bool real(double) { return true; }
  virtual bool string(std::string&) { return true; }
  virtual bool begin_object() { return true; }
  virtual bool key(std::string&) { return true; }
  virtual bool end_object() { return true; }
  virtual bool begin_array() { return true; }
  virtual bool end_array() { return true; }
};

/// False: `events` ended it. Throws JsonError if `text` is not one value and nothing else.
bool read_json(std::string_view text, JsonEvents& events);

}  // namespace lockstep

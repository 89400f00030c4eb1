// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "io/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>

namespace lockstep {

namespace {

/// Values are read, copied and written by functions that call themselves for each level.
constexpr std::size_t kMostLevels = 1000;

/// Hands the tokens of the library's parser on, without a value of its own for them.
class Tokens {
 public:
  explicit Tokens(JsonEvents& events) : events_(events) {}

  bool null() { return events_.null(); }
  bool boolean(bool value) { return events_.boolean(value); }
  bool number_integer(std::int64_t value) { return events_.integer(value); }
  bool number_unsigned(std::uint64_t value) { return events_.unsigned_integer(value); }
  bool number_float(double value, const std::string&) { return events_.real(value); }
  bool string(std::string& value) { return events_.string(value); }
  bool binary(nlohmann::json::binary_t&) { return false; }  // only in CBOR and its like
  bool start_object(std::size_t) { return events_.begin_object(); }
  bool key(std::string& name) { return events_.key(name); }
  bool end_object() { return events_.end_object(); }
  bool start_array(std::size_t) { return events_.begin_array(); }
  bool end_array() { return events_.end_array(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
    throw JsonError(error.what(), position);
  }

 private:
  JsonEvents& events_;
};

/// The library leaves DEL and C1 control characters, on which a terminal acts, as they are. `text`: of JSON.
void append_without_controls(std::string& out, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool is_c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (is_c1)
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(text[++i]));
    else if (byte == 0x7F)
      out += "\\u007f";
    else
      out += text[i];
  }
}

void append_string(std::string& out, const std::string& text, bool ascii) {
  const bool plain =
      std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '\\'; });
  if (plain)
    out.append(1, '"').append(text).append(1, '"');
  else
    append_without_controls(
        out, nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace));
}

void append_real(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 64> text;
  out.append(text.data(), nlohmann::detail::to_chars(text.data(), text.data() + text.size(), value));
}

void new_line(std::string& out, int indent, int level) {
  if (indent < 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indent) * static_cast<std::size_t>(level), ' ');
}

}  // namespace

/// Builds a value. A value goes to the array or the member that is open.
class JsonBuilder final : public JsonEvents {
 public:
  bool null() override { return put({}); }
  bool boolean(bool value) override { return put(value); }
  bool integer(std::int64_t value) override { return put(value); }
  bool unsigned_integer(std::uint64_t value) override { return put(value); }
  bool real(double value) override { return put(value); }
  bool string(std::string& value) override { return put(std::move(value)); }
  bool begin_object() override { return open(Json::object()); }
  bool key(std::string& name) override {
    auto& members = std::get<Json::Object>(open_.back().value->value_);
    // Few members are compared with each other faster than they are looked up.
    constexpr std::size_t kMany = 32;
    Places& places = open_.back().places;
    if (members.size() < kMany) {
      const auto found = std::ranges::find(members, name, &Json::Member::name);
      member_ =
          found != members.end() ? &found->value : &members.emplace_back(Json::Member{name, Json()}).value;
      return true;
    }
    if (places.empty())
      for (std::size_t i = 0; i < members.size(); ++i) places.emplace(members[i].name, i);
    const auto [place, is_new] = places.emplace(name, members.size());
    member_ = &(is_new ? members.emplace_back(Json::Member{name, Json()}) : members[place->second]).value;
    return true;
  }
  bool end_object() override { return close(); }
  bool begin_array() override { return open(Json::array()); }
  bool end_array() override { return close(); }

  Json take() { return std::move(root_); }

 private:
  Json& place(Json&& value) {
    if (open_.empty()) return root_ = std::move(value);
    if (open_.back().value->is_object()) return *member_ = std::move(value);
    open_.back().value->push_back(std::move(value));
    return open_.back().value->back();
  }
  bool put(Json value) {
    place(std::move(value));
    return true;
  }
  /// The addresses stay: what is open is the last of what holds it.
  bool open(Json value) {
    if (open_.size() == kMostLevels) throw JsonError("values are nested too deeply", 1);
    open_.push_back({&place(std::move(value)), {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  using Places = std::unordered_map<std::string, std::size_t>;
  struct Open {
    Json* value;
    Places places;  ///< of the members of an object that has many
  };

  Json root_;
  std::vector<Open> open_;
  Json* member_ = nullptr;
};

bool read_json(std::string_view text, JsonEvents& events) {
  Tokens tokens(events);
  return nlohmann::json::sax_parse(text, &tokens);
}

Json::Json() = default;
Json::Json(std::nullptr_t) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}
Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept : value_(std::exchange(other.value_, std::monostate())) {}
Json& Json::operator=(const Json& other) { return *this = Json(other); }
Json& Json::operator=(Json&& other) noexcept {
  // Through a value of its own: `other` may be a part of what is replaced.
  auto value = std::exchange(other.value_, std::monostate());
  value_ = std::move(value);
  return *this;
}
Json::~Json() = default;

Json::Json(std::initializer_list<Json> items) {
  const bool is_object = std::ranges::all_of(
      items, [](const Json& item) { return item.is_array() && item.size() == 2 && item[0].is_string(); });
  if (!is_object) {
    value_ = Array(items);
    return;
  }
  value_ = Object();
  for (const Json& item : items)
    if (!contains(item[0].string())) (*this)[item[0].string()] = item[1];  // the first of one name counts
}

Json Json::array() {
  Json json;
  json.value_ = Array();
  return json;
}

Json Json::object() {
  Json json;
  json.value_ = Object();
  return json;
}

Json Json::parse(std::string_view text) {
  JsonBuilder builder;
  read_json(text, builder);
  return builder.take();
}

Json Json::parse_or_null(std::string_view text) {
  try {
    return parse(text);
  } catch (const JsonError&) {
    return {};
  }
}

std::string Json::dump(int indent, bool ascii) const {
  std::string out;
  write(out, indent, 0, ascii);
  return out;
}

void Json::write(std::string& out, int indent, int level, bool ascii) const {
  if (is_array() || is_object()) {
    out += is_array() ? '[' : '{';
    bool first = true;
    const auto next = [&] {
      if (!std::exchange(first, false)) out += ',';
      new_line(out, indent, level + 1);
    };
    for (const Json& item : *this) {
      next();
      item.write(out, indent, level + 1, ascii);
    }
    for (const auto& [name, value] : items()) {
      next();
      append_string(out, name, ascii);
      out += indent < 0 ? ":" : ": ";
      value.write(out, indent, level + 1, ascii);
    }
    if (!first) new_line(out, indent, level);
    out += is_array() ? ']' : '}';
  } else if (const auto* const text = std::get_if<std::string>(&value_)) {
    append_string(out, *text, ascii);
  } else if (const auto* const real = std::get_if<double>(&value_)) {
    append_real(out, *real);
  } else if (const auto* const flag = std::get_if<bool>(&value_)) {
    out += *flag ? "true" : "false";
  } else if (is_null()) {
    out += "null";
  } else {
    out += is_unsigned() ? std::to_string(std::get<std::uint64_t>(value_))
                         : std::to_string(std::get<std::int64_t>(value_));
  }
}

bool Json::is_integer() const { return std::holds_alternative<std::int64_t>(value_) || is_unsigned(); }
bool Json::is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
bool Json::is_array() const { return std::holds_alternative<Array>(value_); }
bool Json::is_object() const { return std::holds_alternative<Object>(value_); }

const char* Json::kind() const {
  return is_null()     ? "null"
         : is_number() ? "number"
         : is_string() ? "string"
         : is_array()  ? "array"
         : is_object() ? "object"
                       : "boolean";
}

// The library's words for its own values.
JsonError Json::wrong_kind(const char* wanted) const {
  return JsonError(fmt::format("[json.exception.type_error.302] type must be {}, but is {}", wanted, kind()));
}

bool Json::boolean() const {
  if (const auto* const flag = std::get_if<bool>(&value_)) return *flag;
  throw wrong_kind("boolean");
}

Json::Number Json::number() const {
  if (const auto* const whole = std::get_if<std::int64_t>(&value_)) return *whole;
  if (const auto* const whole = std::get_if<std::uint64_t>(&value_)) return *whole;
  if (const auto* const real = std::get_if<double>(&value_)) return *real;
  throw wrong_kind("number");
}

const std::string& Json::string() const {
  if (const auto* const text = std::get_if<std::string>(&value_)) return *text;
  throw wrong_kind("string");
}

bool Json::equals(const Json& other) const {
  if (is_number() && other.is_number())
    return std::visit(
        [](auto a, auto b) {
          if constexpr (std::is_integral_v<decltype(a)> && std::is_integral_v<decltype(b)>)
            return std::cmp_equal(a, b);
          else
            return static_cast<double>(a) == static_cast<double>(b);
        },
        number(), other.number());
  const auto same = [](const Member& a, const Member& b) { return a.name == b.name && a.value == b.value; };
  if (is_array() || is_object())
    return value_.index() == other.value_.index() && std::equal(begin(), end(), other.begin(), other.end()) &&
           std::ranges::equal(items(), other.items(), same);
  if (is_string() && other.is_string()) return string() == other.string();
  return value_.index() == other.value_.index() && (is_null() || boolean() == other.boolean());
}

std::size_t Json::size() const { return is_array() ? std::get<Array>(value_).size() : items().size(); }

const Json* Json::begin() const { return is_array() ? std::get<Array>(value_).data() : nullptr; }
const Json* Json::end() const { return is_array() ? begin() + std::get<Array>(value_).size() : nullptr; }
Json* Json::begin() { return const_cast<Json*>(std::as_const(*this).begin()); }
Json* Json::end() { return const_cast<Json*>(std::as_const(*this).end()); }

const Json& Json::operator[](std::size_t index) const {
  if (!is_array()) throw wrong_kind("array");
  return std::get<Array>(value_).at(index);
}
Json& Json::operator[](std::size_t index) { return const_cast<Json&>(std::as_const(*this)[index]); }

void Json::push_back(Json item) {
  if (is_null()) value_ = Array();
  if (!is_array()) throw wrong_kind("array");
  std::get<Array>(value_).push_back(std::move(item));
}

std::span<const Json::Member> Json::items() const {
  const auto* const members = std::get_if<Object>(&value_);
  return members == nullptr ? std::span<const Member>() : *members;
}

const Json* Json::find(std::string_view name) const {
  const auto members = items();
  const auto found = std::ranges::find(members, name, &Member::name);
  return found == members.end() ? nullptr : &found->value;
}

const Json& Json::at(std::string_view name) const {
  if (const Json* const found = find(name)) return *found;
  throw JsonError(is_object()
                      ? fmt::format("[json.exception.out_of_range.403] key '{}' not found", name)
                      : fmt::format("[json.exception.type_error.304] cannot use at() with {}", kind()));
}

const Json& Json::operator[](std::string_view name) const {
  static const Json kNull;
  const Json* const found = find(name);
  return found == nullptr ? kNull : *found;
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) value_ = Object();
  if (const Json* const found = find(name)) return const_cast<Json&>(*found);
  if (!is_object()) throw wrong_kind("object");
  return std::get<Object>(value_).emplace_back(Member{std::string(name), Json()}).value;
}

void Json::erase(std::string_view name) {
  if (auto* const members = std::get_if<Object>(&value_))
    std::erase_if(*members, [&](const Member& member) { return member.name == name; });
}

void Json::update(const Json& object) {
  for (const auto& [name, value] : object.items()) (*this)[name] = value;
}

}  // namespace lockstep

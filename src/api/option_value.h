// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Options as C++ values: the members of the structs in options.h, which are made from the tables that check a
// configuration. A value is written as it would stand in a configuration, and is checked there. What is left
// out has the table's default.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/node.h"

namespace lockstep {

/// One of several things, by its name, with its options: a rule, a schedule, an initialiser, a reader, ...
struct Choice {
  std::string name;
  Node options = {};  ///< a map, or null

  /// `name`, or `name: {...}`.
  Node node() const;
};

/// An option of any type: a number, a text, a truth value, null, a list, a choice.
class OptionValue {
 public:
  OptionValue(std::nullptr_t) {}
  template <std::same_as<bool> T>
  OptionValue(T value) : node_(Node::scalar(value ? "true" : "false")) {}
  template <std::signed_integral T>
  OptionValue(T value) : node_(node_of(static_cast<std::int64_t>(value))) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) OptionValue(T value) : node_(node_of(static_cast<std::uint64_t>(value))) {}
  OptionValue(float value) : node_(node_of(value)) {}
  OptionValue(double value) : node_(node_of(value)) {}
  OptionValue(const char* text) : OptionValue(std::string(text)) {}
  OptionValue(std::string_view text) : OptionValue(std::string(text)) {}
  OptionValue(std::string text);
  OptionValue(const Choice& choice);
  OptionValue(Node node);
  OptionValue(const OptionValue&);
  OptionValue(OptionValue&&) noexcept;
  OptionValue& operator=(const OptionValue&);
  OptionValue& operator=(OptionValue&&) noexcept;
  ~OptionValue();
  template <typename T>
  requires std::convertible_to<T, OptionValue> OptionValue(const std::vector<T>& items) {
    node_.kind = Node::Kind::list;
    for (const T& item : items) node_.items.push_back(OptionValue(item).node_);
  }

  const Node& node() const { return node_; }

 private:
  static Node node_of(std::int64_t value);
  static Node node_of(std::uint64_t value);
  static Node node_of(float value);
  static Node node_of(double value);

  Node node_;
};

/// A map of options, as they stand in a configuration.
Node options_map(std::initializer_list<std::pair<std::string_view, OptionValue>> options);

/// Sets an option of a map, or replaces it. A null node becomes a map.
void set_option(Node& map, std::string_view name, const OptionValue& value);

/// An option of a struct in options.h; left out if nothing is given.
class AnySetting {
 public:
  AnySetting(const AnySetting&);
  AnySetting(AnySetting&&) noexcept;
  AnySetting& operator=(const AnySetting&);
  AnySetting& operator=(AnySetting&&) noexcept;
  ~AnySetting();

  /// The value; null: it is left out.
  const Node* node() const { return node_.get(); }

 protected:
  AnySetting();
  explicit AnySetting(const OptionValue& value);

 private:
  std::unique_ptr<const Node> node_;
};

/// The first member of each struct of options. It takes no value, so that a value in the place of the struct
/// (`.train = 5`) is an error, and not that of the struct's first option.
class OptionsByName {
 public:
  constexpr OptionsByName() {}
};

namespace option_types {
/// Which C++ types a table's type takes. A fraction is no whole number, and a number is no text.
template <typename Wanted, typename Given>
constexpr bool takes() {
  using T = std::remove_cvref_t<Given>;
  if constexpr (std::same_as<Wanted, bool>)
    return std::same_as<T, bool>;
  else if constexpr (std::integral<Wanted>)
    return std::integral<T> && !std::same_as<T, bool>;
  else if constexpr (std::floating_point<Wanted>)
    return (std::integral<T> && !std::same_as<T, bool>) || std::floating_point<T>;
  else if constexpr (std::same_as<Wanted, std::string>)
    return std::convertible_to<T, std::string_view>;
  else
    return std::convertible_to<Given, Wanted>;
}
}  // namespace option_types

/// An option that may be left out. nullptr is the null of a configuration.
template <typename T>
class Setting : public AnySetting {
 public:
  Setting() = default;
  Setting(std::nullptr_t) : AnySetting(OptionValue(nullptr)) {}
  template <typename U>
  requires(option_types::takes<T, U>()) Setting(U&& value)
      : AnySetting(OptionValue(std::forward<U>(value))) {}
};

/// A list; one value stands for a list of one.
template <typename T>
class Setting<std::vector<T>> : public AnySetting {
 public:
  Setting() = default;
  Setting(std::nullptr_t) : AnySetting(OptionValue(nullptr)) {}
  Setting(const std::vector<T>& items) : AnySetting(OptionValue(items)) {}
  Setting(std::initializer_list<T> items) : AnySetting(OptionValue(std::vector<T>(items))) {}
  template <typename U>
  requires(option_types::takes<T, U>()) Setting(U&& value)
      : AnySetting(OptionValue(std::forward<U>(value))) {}
};

/// Numbers, texts, lists and choices, as the option's help says.
template <>
class Setting<OptionValue> : public AnySetting {
 public:
  Setting() = default;
  Setting(std::initializer_list<OptionValue> items)
      : AnySetting(OptionValue(std::vector<OptionValue>(items))) {}
  template <typename U>
  requires std::convertible_to<U, OptionValue> Setting(U&& value)
      : AnySetting(OptionValue(std::forward<U>(value))) {}
};

/// An option without a default: a program that leaves it out does not compile.
template <typename T>
class Required : public Setting<T> {
 public:
  Required() = delete;
  using Setting<T>::Setting;
};

/// The options that are given, as a map; null if there are none.
Node given_options(std::initializer_list<std::pair<std::string_view, const AnySetting*>> options);

}  // namespace lockstep

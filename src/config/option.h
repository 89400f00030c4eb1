// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Options that are members of a struct. A table binds each of them once:
//
//   struct CosineOptions {
//     double initial, decay_steps, alpha;
//   };
//   constexpr ParamSpec kOptions[] = {
//       option<&CosineOptions::initial>("initial", kRequired, above(0).up_to(1e30), "value at time 0"),
//       option<&CosineOptions::decay_steps>("decay_steps", kRequired, above(0).up_to(1e15), "..."),
//       option<&CosineOptions::alpha>("alpha", "0", between(0, 1), "smallest value, as a share of initial"),
//   };
//   const auto options = Params(node, kOptions, "schedule cosine_decay").as<CosineOptions>();
//
// The type of an option is that of its member. An enumeration takes choices, in the order of its enumerators.
// A class of another room may be a member, too: it declares the type of its option as T::kParamType, and a
// function set_member(). option_as() is for a member that is computed from the value.
//
// Only files with a table include this header.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/params.h"

namespace lockstep {

/// The type of the option that sets a T.
template <typename T>
struct OptionType {
  static constexpr ParamType value = [] {
    if constexpr (std::is_enum_v<T>)
      return ParamType::string;
    else
      return T::kParamType;
  }();
};
template <ParamType kType>
struct OptionTypeIs {
  static constexpr ParamType value = kType;
};
template <>
struct OptionType<bool> : OptionTypeIs<ParamType::boolean> {};
template <>
struct OptionType<int> : OptionTypeIs<ParamType::integer> {};
template <>
struct OptionType<std::int64_t> : OptionTypeIs<ParamType::integer> {};
template <>
struct OptionType<float> : OptionTypeIs<ParamType::real> {};
template <>
struct OptionType<double> : OptionTypeIs<ParamType::real> {};
template <>
struct OptionType<std::string> : OptionTypeIs<ParamType::string> {};
template <>
struct OptionType<std::vector<std::int64_t>> : OptionTypeIs<ParamType::integers> {};
template <>
struct OptionType<std::vector<double>> : OptionTypeIs<ParamType::reals> {};
template <>
struct OptionType<std::vector<std::string>> : OptionTypeIs<ParamType::strings> {};
template <>
struct OptionType<Node> : OptionTypeIs<ParamType::node> {};
template <typename T>
struct OptionType<std::optional<T>> : OptionType<T> {};

void set_member(bool& member, const Params& params, const ParamSpec& option);
void set_member(int& member, const Params& params, const ParamSpec& option);
void set_member(std::int64_t& member, const Params& params, const ParamSpec& option);
/// Rounds the number.
void set_member(float& member, const Params& params, const ParamSpec& option);
void set_member(double& member, const Params& params, const ParamSpec& option);
void set_member(std::string& member, const Params& params, const ParamSpec& option);
void set_member(std::vector<std::int64_t>& member, const Params& params, const ParamSpec& option);
void set_member(std::vector<double>& member, const Params& params, const ParamSpec& option);
void set_member(std::vector<std::string>& member, const Params& params, const ParamSpec& option);
void set_member(Node& member, const Params& params, const ParamSpec& option);
/// The place of the value among the choices of the option.
int choice_index(const Params& params, const ParamSpec& option);
template <typename T>
requires std::is_enum_v<T>
void set_member(T& member, const Params& params, const ParamSpec& option) {
  member = static_cast<T>(choice_index(params, option));
}
/// Null sets nothing.
template <typename T>
void set_member(std::optional<T>& member, const Params& params, const ParamSpec& option) {
  member.reset();
  if (params.has(option.name)) set_member(member.emplace(), params, option);
}

template <typename T>
struct MemberPointer;
template <typename Owner, typename Member>
struct MemberPointer<Member Owner::*> {
  using owner = Owner;
};
/// The class of the first of some pointers to members.
template <auto... kPath>
struct OwnerOf;
template <auto kFirst, auto... kRest>
struct OwnerOf<kFirst, kRest...> : MemberPointer<decltype(kFirst)> {};

/// The member of an Owner that pointers to members reach one after the other.
///
/// The Owner is a parameter of its own, here and below, although the pointers say it: GCC 12 gives what is
/// made from pointers to members alone external linkage, also where their class is in an unnamed namespace,
/// and the linker would merge the options of two files whose classes and members have equal names
/// (tests/unit/config/local_symbols.cmake).
template <typename Owner, auto... kPath>
struct MemberPath {
  // clang-format off: it knows no fold of this operator
  static auto& in(void* object) { return (*static_cast<Owner*>(object).*....*kPath); }
  // clang-format on
  using Member = std::remove_reference_t<decltype(in(nullptr))>;
  static void set(void* object, const Params& params, const ParamSpec& option) {
    set_member(in(object), params, option);
  }
  template <auto kConvert>
  static void set_converted(void* object, const Params& params, const ParamSpec& option) {
    in(object) = kConvert(params, option);
  }
};
/// Its address stands for a member.
template <typename Owner, auto... kPath>
inline constexpr char member_tag = 0;

/// An option that sets a member: option<&Options::rate>(...), or option<&Options::part, &Part::rate>(...) for
/// a member of a member.
template <auto... kPath, typename Owner = typename OwnerOf<kPath...>::owner>
constexpr ParamSpec option(std::string_view name, std::string_view fallback, OptionRange range,
                           std::string_view help, Change change = Change::result) {
  using Path = MemberPath<Owner, kPath...>;
  constexpr ParamType kType = OptionType<typename Path::Member>::value;
  return {name,
          kType,
          fallback,
          range,
          help,
          change,
          {&Path::set, &owner_tag<Owner>, &member_tag<Owner, kPath...>}};
}

/// The same for a member that takes kConvert(params, option), a function of an option of another type.
template <auto kConvert, auto... kPath, typename Owner = typename OwnerOf<kPath...>::owner>
constexpr ParamSpec option_as(ParamType type, std::string_view name, std::string_view fallback,
                              OptionRange range, std::string_view help, Change change = Change::result) {
  using Path = MemberPath<Owner, kPath...>;
  return {name,
          type,
          fallback,
          range,
          help,
          change,
          {&Path::template set_converted<kConvert>, &owner_tag<Owner>, &member_tag<Owner, kPath...>}};
}
/// For option_as() of a bool: whether the second of two choices is written.
bool is_second_choice(const Params& params, const ParamSpec& option);

/// The name of the option that sets a member, for Params::error(), given() and where().
template <auto... kPath, typename Owner = typename OwnerOf<kPath...>::owner>
std::string_view option_name(const Params& params) {
  return params.name_of_member(&member_tag<Owner, kPath...>);
}

}  // namespace lockstep

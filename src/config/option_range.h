// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The values that an option takes: limits of a number with a unit, the choices of a text, or words for the
// reference. A table of options writes it as at_least(1, "steps"), between(0, 1),
// above(0).up_to(1e12).or_null(), one_of("same|valid"). What is wrong in itself, such as between(1, 0), does
// not compile in a constexpr table.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// One end of a range. The reference shows whole numbers with all digits and others in the shortest form:
/// 1000000, but 1e6 for 1e6.
class Limit {
 public:
  constexpr Limit(std::integral auto value)  // NOLINT(google-explicit-constructor)
      : real_(static_cast<double>(value)), whole_(static_cast<std::int64_t>(value)), is_whole_(true) {}
  constexpr Limit(double value) : real_(value) {}  // NOLINT(google-explicit-constructor)

  constexpr double value() const { return real_; }
  /// The number, where it was written without point and exponent.
  constexpr std::optional<std::int64_t> whole() const {
    return is_whole_ ? std::optional(whole_) : std::nullopt;
  }
  std::string text() const;

 private:
  double real_ = 0;
  std::int64_t whole_ = 0;
  bool is_whole_ = false;
};

/// Called where a range is wrong in itself: no constant expression, so a table with it does not compile.
[[noreturn]] void refuse_range(const char* what);

class OptionRange {
 public:
  struct End {
    Limit limit;
    bool is_included;
  };

  /// Any value.
  constexpr OptionRange() = default;

  // The rest of a range that above() or at_least() begins.
  constexpr OptionRange up_to(Limit most, std::string_view unit = {}) const {
    return with_upper({most, true}, unit);
  }
  constexpr OptionRange below(Limit end, std::string_view unit = {}) const {
    return with_upper({end, false}, unit);
  }

  /// Null is a value, too.
  constexpr OptionRange or_null() const {
    OptionRange range = *this;
    range.null_ = true;
    return range;
  }
  /// A schedule of numbers of the range is a value, too (optim/scheduled_number.h).
  constexpr OptionRange or_schedule() const {
    OptionRange range = *this;
    range.schedule_ = true;
    return range;
  }
  /// A remark that the reference shows after the range: "one per channel, or one".
  constexpr OptionRange note(std::string_view remark) const {
    OptionRange range = *this;
    range.note_ = remark;
    return range;
  }
  /// The range of the numbers alone, without null and schedules.
  constexpr OptionRange of_numbers() const {
    OptionRange range = *this;
    range.null_ = range.schedule_ = false;
    return range;
  }

  constexpr const std::optional<End>& lower() const { return lower_; }
  constexpr const std::optional<End>& upper() const { return upper_; }
  constexpr bool takes_null() const { return null_; }
  constexpr bool takes_schedule() const { return schedule_; }
  constexpr bool contains(double value) const {
    return (!lower_ ||
            (lower_->is_included ? value >= lower_->limit.value() : value > lower_->limit.value())) &&
           (!upper_ ||
            (upper_->is_included ? value <= upper_->limit.value() : value < upper_->limit.value()));
  }
  constexpr bool has_choices() const { return !choices_.empty(); }
  /// In their order; none: texts are not limited.
  std::vector<std::string_view> choices() const;

  /// For messages and the reference: "[0, 1)", ">= 1 steps or null", "same|valid". Empty: any value.
  std::string text() const;

 private:
  friend constexpr OptionRange at_least(Limit least, std::string_view unit);
  friend constexpr OptionRange above(Limit limit, std::string_view unit);
  friend constexpr OptionRange at_most(Limit most, std::string_view unit);
  friend constexpr OptionRange one_of(std::string_view choices);
  friend constexpr OptionRange in_words(std::string_view words);

  constexpr OptionRange with_upper(End upper, std::string_view unit) const {
    if (upper_ || !lower_) refuse_range("up_to() and below() follow at_least() or above()");
    if (!(lower_->limit.value() < upper.limit.value()))
      refuse_range("the lower limit is not below the upper one");
    OptionRange range = *this;
    range.upper_ = upper;
    if (!unit.empty()) range.unit_ = unit;
    return range;
  }

  std::optional<End> lower_, upper_;
  std::string_view unit_, choices_, words_, note_;
  bool null_ = false, schedule_ = false;
};

constexpr OptionRange at_least(Limit least, std::string_view unit = {}) {
  OptionRange range;
  range.lower_ = {least, true};
  range.unit_ = unit;
  return range;
}
/// Larger than the limit.
constexpr OptionRange above(Limit limit, std::string_view unit = {}) {
  OptionRange range;
  range.lower_ = {limit, false};
  range.unit_ = unit;
  return range;
}
constexpr OptionRange at_most(Limit most, std::string_view unit = {}) {
  OptionRange range;
  range.upper_ = {most, true};
  range.unit_ = unit;
  return range;
}
/// Both limits are included.
constexpr OptionRange between(Limit least, Limit most, std::string_view unit = {}) {
  return at_least(least).up_to(most, unit);
}
/// Texts, written "a|b|c".
constexpr OptionRange one_of(std::string_view choices) {
  if (choices.find('|') == choices.npos || choices.find(' ') != choices.npos || choices.front() == '|' ||
      choices.back() == '|' || choices.find("||") != choices.npos)
    refuse_range("choices are written a|b|c");
  OptionRange range;
  range.choices_ = choices;
  return range;
}
/// What the reference says of values that are checked where they are used. Words that end with "or null" mean
/// that null is a value.
constexpr OptionRange in_words(std::string_view words) {
  OptionRange range;
  range.words_ = words;
  range.null_ = words.ends_with("or null");
  return range;
}
/// Any value, or null.
constexpr OptionRange or_null() { return OptionRange().or_null(); }

}  // namespace lockstep

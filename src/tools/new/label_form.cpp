// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "tools/new/label_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"

namespace lockstep {

namespace {

constexpr std::int64_t kMostClasses = 100'000;

[[noreturn]] void no_classes(const std::string& why) {
  throw Error(ErrorKind::data, fmt::format("the labels are no classes: {}", why), {},
              "Give --task numbers to predict numbers, or --labels NAME for other labels.");
}

LabelForm form_of_column(std::span<const float> values, const LabelSigns& signs) {
  std::set<float> different;
  bool whole = true;
  float least = values[0], most = values[0];
  for (const float value : values) {
    whole = whole && value == std::floor(value);
    least = std::min(least, value);
    most = std::max(most, value);
    if (std::isfinite(value) && std::ssize(different) <= kMostClasses) different.insert(value);
  }
  constexpr std::int64_t kUnused = 10;  // classes without samples, such as those below the first
  const std::int64_t count = std::ssize(different), samples = std::ssize(values);
  const bool may_be = whole && least >= 0 && most < static_cast<float>(kMostClasses);
  const std::int64_t classes = may_be ? static_cast<std::int64_t>(most) + 1 : 0;
  if (signs.as_numbers) return {};
  if (count < 2) return {LabelTask::classes, count};
  if (signs.as_classes) {
    if (!may_be)
      no_classes(!whole      ? "some are fractions"
                 : least < 0 ? fmt::format("the least is {:g}, and classes count from 0", least)
                             : fmt::format("the largest is {:g}", most));
    return {LabelTask::classes, classes};
  }
  if (!may_be) {
    const bool few = whole && repeats_as_classes(count, samples);
    const std::string doubt =
        whole && count == 2
            ? fmt::format("labels {:g} and {:g} are numbers to predict; for two classes, store 0 and 1",
                          least, most)
        : few ? fmt::format("labels from {:g} to {:g} are numbers to predict: classes count from 0", least,
                            most)
              : "";
    return {LabelTask::numbers, 0, doubt};
  }
  const bool repeats = repeats_as_classes(count, samples), dense = count * 2 + kUnused >= classes;
  if (repeats && dense) {
    constexpr std::int64_t kFew = 20;
    const bool plain = count == 2 || (count <= kFew && least <= 1) || signs.classes_by_name;
    if (signs.integers || count == 2)
      return {LabelTask::classes, classes,
              plain ? ""
                    : fmt::format("whole numbers from {:g} to {:g} are classes; otherwise: --task numbers",
                                  least, most)};
    return {
        LabelTask::classes, classes,
        fmt::format("labels are {} classes, though stored as fractions; otherwise: --task numbers", classes)};
  }
  // Few samples of many classes, or numbers that happen to be whole.
  if (signs.integers && signs.classes_by_name)
    return {LabelTask::classes, classes,
            fmt::format("labels are {} classes, of which {} have samples; otherwise: --task numbers", classes,
                        count)};
  return {LabelTask::numbers, 0,
          fmt::format("labels are numbers to predict: {} different whole numbers up to {:g}{}", count, most,
                      "; otherwise: --task classes")};
}

LabelForm form_of_rows(std::span<const float> values, std::int64_t columns, const LabelSigns& signs) {
  bool yes_or_no = true, one_each = true, shares = true;
  const auto width = static_cast<std::size_t>(columns);
  for (std::size_t at = 0; at + width <= values.size(); at += width) {
    double sum = 0;
    for (const float value : values.subspan(at, width)) {
      yes_or_no = yes_or_no && (value == 0 || value == 1);
      shares = shares && value >= 0 && value <= 1;
      sum += static_cast<double>(value);
    }
    constexpr double kExact = 1e-3;
    shares = shares && std::abs(sum - 1) < kExact;
    one_each = one_each && sum == 1;
  }
  if (signs.as_numbers) return {};
  if (yes_or_no && one_each) return {LabelTask::classes, columns};
  if (yes_or_no) return {LabelTask::many_labels, columns};
  if (shares)
    return {LabelTask::classes, columns,
            fmt::format("the {} labels of a sample are probabilities of classes; otherwise: --task numbers",
                        columns)};
  if (signs.as_classes) no_classes(fmt::format("a sample has {}, which are not 0 or 1", columns));
  return {LabelTask::numbers, 0,
          signs.integers ? fmt::format("the {} labels of a sample are numbers to predict", columns) : ""};
}

}  // namespace

bool repeats_as_classes(std::int64_t values, std::int64_t samples) {
  constexpr std::int64_t kFew = 20, kRepeated = 5;
  return (values <= kFew && values * 2 <= samples) || values * kRepeated <= samples;
}

LabelForm label_form(std::span<const float> values, std::int64_t columns, const LabelSigns& signs) {
  if (values.empty()) return {};
  return columns == 1 ? form_of_column(values, signs) : form_of_rows(values, columns, signs);
}

}  // namespace lockstep

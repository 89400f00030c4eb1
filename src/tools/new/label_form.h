// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: are labels classes, several labels at once, or numbers to predict? By their values.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace lockstep {

enum class LabelTask { classes, many_labels, numbers };

struct LabelForm {
  LabelTask task = LabelTask::numbers;
  std::int64_t classes = 0;
  /// Empty: it is plain to see. Otherwise what is assumed, and which option says otherwise.
  std::string doubt = {};
};

struct LabelSigns {
  bool integers = false;                        ///< the labels are stored as whole numbers
  bool classes_by_name = false;                 ///< they are called label, class, species
  bool as_classes = false, as_numbers = false;  ///< somebody said so
};

/// The columns of a table and arrays of labels alike. A whole number that repeats is a class: at most 20
/// values, or each about five times.
bool repeats_as_classes(std::int64_t values, std::int64_t samples);

/// `values`: `columns` of each sample, one sample after the other. Throws Error(data) without a place for
/// numbers that are to be classes and cannot.
LabelForm label_form(std::span<const float> values, std::int64_t columns, const LabelSigns& signs);

}  // namespace lockstep

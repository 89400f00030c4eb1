// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// `lockstep new`: what the names of columns, arrays, fields, files and folders say. One list for all formats.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

std::string lower_case(std::string text);

/// Names of what is predicted, and of what it is predicted from, the usual ones first.
std::span<const std::string_view> usual_labels();
std::span<const std::string_view> usual_features();

/// The place of `name` in usual_labels(); nothing if it is none of them. With `in_words` also of a name that
/// ends or begins with one of them: train_labels, label_index, digit/label.
std::optional<std::size_t> label_rank(std::string_view name, bool in_words);
std::optional<std::size_t> feature_rank(std::string_view name, bool in_words);
/// The label is a class by its name: label, class, species; a target or y may also be a number.
bool names_classes(std::string_view name);

/// What tables of customers, passengers and houses are kept for: survived, churn, SalePrice.
bool names_outcome(std::string_view name);

/// The name is that of a number or key of a row: id, PersonId, row_nr, index, filename.
bool names_rows(std::string_view name);
/// It ends with id: those that several rows may have, too, such as patient_id.
bool names_ids(std::string_view name);
/// The name is that of a time or a place: time, date, latitude.
bool names_axis(std::string_view name);

enum class SetKind { train, validation, test };

/// A name that says for which set it is: "x_train" is x for training, "test/image" image for a test, "val" is
/// nothing but the set.
struct SetName {
  SetKind set;
  std::string rest;  ///< the other words of the name, in lower case, with "_" between them
};
std::optional<SetName> set_of(std::string_view name);
/// A name that says which part of samples a file has: "X_train" is features of train, "labels" labels.
struct PartName {
  bool are_labels;   ///< otherwise features
  std::string rest;  ///< the other words of the name, in lower case, with "_" between them
};
std::optional<PartName> part_of(std::string_view name);
/// "train", "validation", "test".
const char* name_of(SetKind set);

}  // namespace lockstep

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Labels and predictions of one sample as a few words for people.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "data/dataset.h"
#include "model/heads.h"

namespace lockstep {

inline constexpr int kMostShownValues = 4;

std::int64_t elements_of(const Head& head);
/// A head that gives one distribution over classes per sample.
bool is_classifier(const Head& head);
/// A head that says of each of several labels whether a sample has it.
bool is_multi_label(const Head& head);
/// A head of a few numbers per sample.
bool has_few_values(const Head& head);

/// `named`: the classes or labels have the names that the data set gives.
std::string class_text(const Dataset& data, bool named, std::int64_t index);
/// The labels whose number exceeds `limit`: "red, blue", "none".
std::string marked_text(const Dataset& data, bool named, std::span<const float> numbers, float limit);

}  // namespace lockstep

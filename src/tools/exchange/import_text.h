// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// What `lockstep import` prints about tensors and variables.
#pragma once

#include <span>
#include <string>

#include "tools/exchange/import_plan.h"

namespace lockstep {

/// A line for each tensor: its name, type and shape, and the name that it gets without a model.
std::string tensors_text(std::span<const ImportedTensor> tensors);

/// A line for each variable with its tensor or the reason why it has none, tensors that are not used, and the
/// mapping that the plan proposes, as YAML for --map. What is ambiguous stands there as comments.
std::string plan_text(const ImportPlan& plan, std::span<const ImportedTensor> tensors,
                      std::span<const WantedVariable> wanted);

/// Why a variable gets no tensor, for messages.
std::string reason(const ImportPlan::Line& line, const WantedVariable& variable,
                   std::span<const ImportedTensor> tensors);

}  // namespace lockstep

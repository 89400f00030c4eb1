// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The values that $name and $(expression) stand for in the layers of a block or a repeat.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "config/params.h"

namespace lockstep {

using BlockValues = std::map<std::string, Node, std::less<>>;

/// `node` with $name and $(expression) replaced in all scalars. A scalar that is nothing else becomes the
/// value itself, which may be a list; within a text it is written out. An expression has whole numbers,
/// names, + - * / ^ and parentheses; a division must have no remainder. $$ is a dollar sign. Throws
/// Error(config) at the scalar.
Node with_values(const Node& node, const BlockValues& values);
/// The whole number that a scalar is. Throws Error(config) if it is none from `least` to `most`.
std::int64_t whole_number(const Node& node, std::string_view what, std::int64_t least, std::int64_t most);

}  // namespace lockstep

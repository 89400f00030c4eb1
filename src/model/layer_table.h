// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of layers: name in a configuration, help, options, factory. To add a layer, write one file, one
// line in layer_table.cpp, one test and one line in the documentation (docs/adding_a_layer.md).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "config/params.h"
#include "config/table.h"
#include "model/layer.h"

namespace lockstep {

struct LayerFunction;

struct LayerEntry {
  std::string_view name, help;
  std::span<const ParamSpec> table;
  std::unique_ptr<Layer> (*make)(std::string name, const Params&);
  const LayerFunction* function = nullptr;  ///< set by register_function(), with `make` null

  std::unique_ptr<Layer> create(std::string layer_name, const Params& params) const;
};

/// A factory for LayerEntry::make: T is constructed from (name, T::Options), whose members the table binds
/// (config/option.h), and from Params, too, if it refuses some of them; or from (name, Params); or from
/// (name) if it has no options.
template <typename T>
std::unique_ptr<Layer> make_layer(std::string name, const Params& options) {
  if constexpr (requires(const Params& p) { T(std::string(), p.as<typename T::Options>(), p); })
    return std::make_unique<T>(std::move(name), options.as<typename T::Options>(), options);
  else if constexpr (requires { typename T::Options; })
    return std::make_unique<T>(std::move(name), options.as<typename T::Options>());
  else if constexpr (std::is_constructible_v<T, std::string, const Params&>)
    return std::make_unique<T>(std::move(name), options);
  else
    return std::make_unique<T>(std::move(name));
}

/// Lockstep's own layers, then those that add() added.
Table<LayerEntry>& layer_table();

}  // namespace lockstep

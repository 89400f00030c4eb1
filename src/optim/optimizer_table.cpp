// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// All optimization rules. To add one: a file that defines its OptimizerEntry, a declaration and a line here,
// a test, a line in docs/optimizers.md (docs/adding_an_optimizer.md).
#include "core/named_options.h"
#include "optim/optimizer.h"

namespace lockstep {

// Each in its own file, <name>.cpp.
OptimizerEntry adam_optimizer();
OptimizerEntry gradient_descent_optimizer();
OptimizerEntry momentum_optimizer();

std::span<const OptimizerEntry> optimizer_table() {
  static const OptimizerEntry kTable[] = {
      gradient_descent_optimizer(),
      momentum_optimizer(),
      adam_optimizer(),
  };
  return kTable;
}

OptimizerOptions optimizer_options(const Node& node) {
  const NamedOptions named = named_options(node, "optimizer");
  const OptimizerEntry& entry = find_entry(optimizer_table(), named, "optimizer");
  OptimizerOptions options{entry, Params(named.options, entry.table, "optimizer " + named.name)};
  options.make();
  return options;
}

}  // namespace lockstep

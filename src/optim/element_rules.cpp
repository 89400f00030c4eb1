// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Makes the optimizers of the element-wise rules of kernels/rules.h.
#include "kernels/rules.h"
#include "optim/element_rule.h"
#include "optim/optimizer_entries.h"

namespace lockstep {

namespace {

template <template <class> class Class>
class Named final : public Class<ElementRule> {
 public:
  explicit Named(const Params& p) : Class<ElementRule>(p) {}
  const char* kind() const override { return Class<ElementRule>::kName; }
};

}  // namespace

void add_element_optimizers(std::vector<OptimizerEntry>& entries) {
  AllRules::visit([&]<template <class> class Class>() {
    using Made = Class<ElementRule>;
    entries.push_back(
        {Made::kName, Made::kHelp, Made::kOptions,
         [](const Params& p) -> std::unique_ptr<Optimizer> { return std::make_unique<Named<Class>>(p); }});
  });
}

}  // namespace lockstep

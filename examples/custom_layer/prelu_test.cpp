// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The first test of a layer: are its gradients those of its own forward pass?
#include <cstdio>

#include <lockstep/testing.h>

#include "prelu.h"

int main() {
  example::Prelu prelu("prelu1", lockstep::make_initializer("he_normal"));
  bool passed = true;
  // One result for the input, one for alpha.
  for (const lockstep::GradientCheck& check : lockstep::check_layer(prelu, {lockstep::Shape{4, 4, 3}})) {
    std::printf("%s %s\n", check.passed() ? "right" : "WRONG", check.to_string().c_str());
    passed = passed && check.passed();
  }
  return passed ? 0 : 1;
}

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// The whole of Lockstep's program with one more layer.
#include <lockstep/program.h>

#include "prelu.h"

int main(int argc, char** argv) {
  lockstep::layer_table().add(example::kPrelu);
  return lockstep::run_program(argc, argv);
}

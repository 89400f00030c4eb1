// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
#include "driver/program.h"

int main(int argc, char** argv) { return lockstep::run_program(argc, argv); }

// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// main() of a program that has all commands of `lockstep`, and parts of its own.
#pragma once

#include "driver/program.h"

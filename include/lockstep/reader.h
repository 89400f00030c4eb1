// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// A reader of one's own (docs/adding_a_reader.md).
#pragma once

#include <lockstep/base.h>

#include "data/reader_options.h"
#include "data/reader_table.h"
#include "io/input_file.h"

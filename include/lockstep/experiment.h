// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// An estimator with its samples: the usual ways in which trainings and evaluations follow each other.
#pragma once

#include <lockstep/estimator.h>

#include "api/experiment.h"

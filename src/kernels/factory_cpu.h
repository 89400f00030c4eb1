// SPDX-FileCopyrightText: The Lockstep authors
// SPDX-License-Identifier: Apache-2.0
//
// Factory functions of the CPU's primitives and compiled-once kernels, one per family (private to this room).
// kernel_table.cpp builds a PrimitiveFactory and the KernelTable from them.
#pragma once

#include <memory>

#include "kernels/fingerprint.h"
#include "kernels/metric.h"
#include "kernels/primitives.h"

namespace lockstep {

std::unique_ptr<LinearPrimitive> make_cpu_convolution(const ConvolutionSpec& spec, int lanes);
std::unique_ptr<LinearPrimitive> make_cpu_dense(const DenseSpec& spec, int lanes);
const FingerprintKernels& cpu_fingerprint_kernels();
const MetricKernels& cpu_metric_kernels();

std::unique_ptr<PoolPrimitive> make_cpu_pool(const PoolSpec& spec, const PoolKernels& kernels);

}  // namespace lockstep

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# The GPU backend's sources, next to the CPU's in their rooms. src/CMakeLists.txt compiles all of them with nvcc and the
# host compiler into lockstep_cuda; tests/support/cuda_emulation compiles those that need no library of NVIDIA's with
# the host compiler alone.
set(LOCKSTEP_CUDA_SOURCES
  core/device_cuda.cpp
  kernels/activation_cuda.cu
  kernels/attention_cuda.cu
  kernels/backend_cuda.cpp
  kernels/broadcast_cuda.cu
  kernels/chosen_algorithms_cuda.cpp
  kernels/clip_cuda.cu
  kernels/convolution_cuda.cpp
  kernels/cuda_launch.cpp
  kernels/dense_cuda.cpp
  kernels/distribution_cuda.cu
  kernels/elementwise_cuda.cu
  kernels/embedding_cuda.cu
  kernels/exact_sums_cuda.cu
  kernels/fingerprint_cuda.cu
  kernels/fused_attention_backward_cuda.cu
  kernels/fused_attention_cuda.cu
  kernels/group_norm_cuda.cu
  kernels/kernel_table_cuda.cpp
  kernels/layout_cuda.cu
  kernels/linear_cuda.cu
  kernels/linear_operations_cuda.cpp
  kernels/loss_cuda.cu
  kernels/loss_terms_cuda.cu
  kernels/measured_algorithms_cuda.cpp
  kernels/metric_cuda.cu
  kernels/norm_cuda.cu
  kernels/plan_check_cuda.cpp
  kernels/planned_attention_cuda.cpp
  kernels/pool_cuda.cu
  kernels/recurrent_cuda.cu
  kernels/sampling_cuda.cu
  kernels/sequence_cuda.cu
  kernels/spatial_cuda.cu
  kernels/time_cuda.cpp
  kernels/update_cuda.cu)
# With instructions that Hopper GPUs alone have (sm_90a).
set(LOCKSTEP_HOPPER_SOURCES
  kernels/hopper_attention_cuda.cu)
# Behind cuBLASLt, cuDNN, NCCL: the emulation has stand-ins.
set(LOCKSTEP_CUDA_LIBRARY_SOURCES
  kernels/cudnn_attention_cuda.cpp
  kernels/cudnn_attention_plan_cuda.cpp
  kernels/cudnn_cuda.cpp
  kernels/cudnn_plan_cuda.cpp
  kernels/cublaslt_cuda.cpp
  kernels/cublaslt_product_cuda.cpp)
set(LOCKSTEP_NCCL_SOURCES
  comm/nccl_communicator.cpp)
list(TRANSFORM LOCKSTEP_NCCL_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM LOCKSTEP_CUDA_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM LOCKSTEP_HOPPER_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM LOCKSTEP_CUDA_LIBRARY_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)

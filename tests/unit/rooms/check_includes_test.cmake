# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# The check of the rooms' walls must find each kind of hole: plants one at a time and looks at the check's answer.
#
#   cmake -DSCRATCH=<folder> -P check_includes_test.cmake
cmake_minimum_required(VERSION 3.22)
set(check ${CMAKE_CURRENT_LIST_DIR}/check_includes.cmake)

# expect(passes|fails file include [part of the message])
function(expect outcome file include)
  file(REMOVE_RECURSE ${SCRATCH})
  file(WRITE ${SCRATCH}/core/shape.h "#include <array>\n")
  file(WRITE ${SCRATCH}/${file} "  # include ${include}\n")
  execute_process(COMMAND ${CMAKE_COMMAND} -DSOURCE=${SCRATCH} -P ${check} RESULT_VARIABLE code OUTPUT_VARIABLE out
                  ERROR_VARIABLE err)
  if(outcome STREQUAL "passes" AND NOT code EQUAL 0)
    message(FATAL_ERROR "${file} may include ${include}, but: ${err}")
  elseif(outcome STREQUAL "fails" AND (code EQUAL 0 OR NOT err MATCHES "src/${file}"))
    message(FATAL_ERROR "${include} in ${file} was not found: ${out}${err}")
  endif()
endfunction()

expect(passes optim/a.cpp "\"model/graph.h\"")
expect(passes driver/a.cpp "\"io/reader.h\"")
expect(fails core/a.h "\"kernels/gemm.h\"")
expect(fails kernels/a.h "\"model/graph.h\"")
expect(fails model/a.cpp "\"optim/adam.h\"")
expect(fails model/a.cpp "\"comm/communicator.h\"")
expect(fails comm/a.cpp "\"model/graph.h\"")
expect(fails io/a.cpp "\"comm/communicator.h\"")
expect(fails io/a.cpp "\"driver/config/config.h\"")
expect(passes comm/a.cpp "<mpi.h>")
expect(fails driver/a.cpp "<mpi.h>")
expect(fails kernels/a.cpp "<nccl.h>")
expect(passes io/a.cpp "<hdf5.h>")
expect(fails model/a.cpp "<hdf5.h>")
expect(passes kernels/a.cpp "<dnnl.hpp>")
expect(fails model/a.cpp "<dnnl.hpp>")
expect(fails io/a.cpp "<yaml-cpp/yaml.h>")
expect(passes kernels/gemm.cu "<cuda_runtime.h>")
expect(passes kernels/stream_cuda.cpp "<cuda_runtime.h>")
expect(fails kernels/cuda/gemm.cpp "<cublasLt.h>")
expect(fails model/a.cpp "<cuda_runtime.h>")
expect(fails attic/a.cpp "<vector>")
file(REMOVE_RECURSE ${SCRATCH})

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Reads an object with nm: Eigen's functions must be those of the namespace lockstep_eigen, which no other program has
# (docs/decisions/004-no-eigen.md).
#
#   cmake -DNM=nm -DOBJECTS=<objects of the room> -P eigen_symbols.cmake
list(FILTER OBJECTS INCLUDE REGEX "symmetric_eigen[.]cpp")
if(NOT OBJECTS)
  message(FATAL_ERROR "there is no object of symmetric_eigen.cpp")
endif()
execute_process(COMMAND ${NM} -C --defined-only ${OBJECTS} OUTPUT_VARIABLE output RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "${NM} failed on ${OBJECTS}")
endif()
if(NOT output MATCHES "lockstep_eigen::")
  message(FATAL_ERROR "no symbol of Eigen was found in ${OBJECTS}")
endif()
string(REGEX MATCH "[^\n]*[^_a-z]Eigen::[^\n]*" foreign "${output}")
if(foreign)
  message(FATAL_ERROR "${OBJECTS}\n  has a symbol that other code may define too: ${foreign}")
endif()

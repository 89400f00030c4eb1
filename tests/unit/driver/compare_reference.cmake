# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# docs/config.md is what the program prints: options and their documentation cannot drift apart.
#
#   cmake -DPROGRAM=... -DREFERENCE=docs/config.md -P compare_reference.cmake
cmake_minimum_required(VERSION 3.22)
execute_process(COMMAND ${PROGRAM} config-reference RESULT_VARIABLE code OUTPUT_VARIABLE printed)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "'lockstep config-reference' ended with ${code}")
endif()
file(READ ${REFERENCE} written)
if(NOT printed STREQUAL written)
  message(FATAL_ERROR "docs/config.md is not what 'lockstep config-reference' prints; run scripts/update_docs.sh PROGRAM")
endif()

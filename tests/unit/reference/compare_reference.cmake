# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# docs/config.md and the generated config.schema.json and api/options.h are what the program prints: options, their
# documentation, their schema and their C++ form cannot drift apart.
#
#   cmake -DPROGRAM=... [-DCOMMAND=schema] [-DARGUMENTS=--header] -DREFERENCE=docs/config.md -P compare_reference.cmake
cmake_minimum_required(VERSION 3.22)
if(NOT COMMAND)
  set(COMMAND config-reference)
endif()
execute_process(COMMAND ${PROGRAM} ${COMMAND} ${ARGUMENTS} RESULT_VARIABLE code OUTPUT_VARIABLE printed)
if(NOT code EQUAL 0)
  message(FATAL_ERROR "'lockstep ${COMMAND} ${ARGUMENTS}' ended with ${code}")
endif()
file(READ ${REFERENCE} written)
if(NOT printed STREQUAL written)
  message(FATAL_ERROR "${REFERENCE} is not what 'lockstep ${COMMAND} ${ARGUMENTS}' prints; build all, or run scripts/update_docs.sh PROGRAM")
endif()

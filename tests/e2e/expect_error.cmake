# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Runs a command that must fail: with this exit code, one "error: ..." message for all ranks together, which matches.
#
#   cmake -DCODE=2 -DMATCHES=<regular expression> -P expect_error.cmake -- command ...
cmake_minimum_required(VERSION 3.22)
set(command "")
set(behind FALSE)
math(EXPR last "${CMAKE_ARGC} - 1")
foreach(i RANGE ${last})
  if(behind)
    list(APPEND command "${CMAKE_ARGV${i}}")
  elseif(CMAKE_ARGV${i} STREQUAL "--")
    set(behind TRUE)
  endif()
endforeach()

execute_process(COMMAND ${command} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
if(NOT code STREQUAL "${CODE}")
  message(FATAL_ERROR "ended with '${code}', not ${CODE}:\n${out}${err}")
endif()
string(REGEX MATCHALL "(^|\n)error: " messages "${err}")
list(LENGTH messages count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "${count} messages instead of one:\n${err}")
endif()
if(NOT err MATCHES "${MATCHES}")
  message(FATAL_ERROR "the message does not match '${MATCHES}':\n${err}")
endif()

# SPDX-FileCopyrightText: The Lockstep authors
# SPDX-License-Identifier: Apache-2.0
#
# Reads the objects of the instruction-set levels with nm. Each object may define only external symbols inside
# lockstep::<its level>. The linker could choose any other weak symbol (an inline function, a template, a
# vtable) for the whole program, with instructions that its processor lacks. For the same reason no code may
# run at start-up, before the level is chosen.
if(NOT OBJECTS)
  message(FATAL_ERROR "no objects given")
endif()
set(defined 0)
foreach(object IN LISTS OBJECTS)
  if(NOT object MATCHES "lockstep_kernels_([a-z0-9]+)[.]dir")
    message(FATAL_ERROR "${object}: unknown level")
  endif()
  set(level ${CMAKE_MATCH_1})
  execute_process(COMMAND ${NM} -C --defined-only ${object} OUTPUT_VARIABLE output RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${NM} failed on ${object}")
  endif()
  string(REPLACE ";" "," output "${output}")
  string(REPLACE "\n" ";" lines "${output}")
  foreach(line IN LISTS lines)
    if(line MATCHES "_GLOBAL__sub_I")
      message(SEND_ERROR "${object}\n  runs code at start-up: ${line}")
    elseif(line MATCHES "^[0-9a-f]+ ([TWVuBDRiG]) (.*)$")
      math(EXPR defined "${defined} + 1")
      if(NOT CMAKE_MATCH_2 MATCHES "^(guard variable for |vtable for |typeinfo for |typeinfo name for )?lockstep::${level}::")
        message(SEND_ERROR "${object}\n  defines outside lockstep::${level}: ${line}")
      endif()
    endif()
  endforeach()
endforeach()
if(defined EQUAL 0)
  message(FATAL_ERROR "no symbol found in nm's output")
endif()
message("${defined} symbols, each in its own level's namespace")

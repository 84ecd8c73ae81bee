# The build includes this file, and so does ctest when it starts: by then programs are built, and
# this is the machine that runs them. GoogleTest's own module makes each TEST a process, which are
# thousands, and takes only one label.

function(tidemark_test_properties test labels)
  # Tests run side by side, so idle OpenMP threads must not spin. Where there is no GPU, say, all
  # tests of an entry skip; ctest says so too. What has failed tests as well does not end so.
  set_tests_properties(${test} PROPERTIES
    LABELS "${labels}" ENVIRONMENT OMP_WAIT_POLICY=PASSIVE
    SKIP_RETURN_CODE 77 SKIP_REGULAR_EXPRESSION
    "\\[  PASSED  \\] 0 tests\\.[ \r\n]*(\\[  SKIPPED \\][^\n]*[\r\n]+)+$")
  if(";${labels};" MATCHES ";long;")  # ctest knows no IN_LIST
    set_tests_properties(${test} PROPERTIES TIMEOUT 3600)
  endif()
endfunction()

# Adds a test for each test suite of `program`, a command that may begin with an emulator. A program
# that was not built, or does not start, becomes a failing test without labels. FIXTURE: what tests
# that need the outcome of all of them require. COST: tests with a higher one start earlier.
function(tidemark_discover_tests program prefix labels)
  cmake_parse_arguments(ARG "" "COST;FIXTURE" "" ${ARGN})
  list(GET program -1 file)
  if(NOT EXISTS ${file})
    add_test(${prefix}.NOT_BUILT ${program})
    return()
  endif()
  execute_process(COMMAND ${program} --gtest_list_tests OUTPUT_VARIABLE listed ERROR_VARIABLE listed
                  RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    add_test(${prefix}.NOT_LISTED ${program} --gtest_list_tests)
    return()
  endif()
  string(REGEX MATCHALL "(^|\n)[A-Za-z0-9_/]+\\." suites "${listed}")
  foreach(suite ${suites})
    string(REGEX REPLACE "\n|\\.$" "" suite "${suite}")
    add_test(${prefix}.${suite} ${program} --gtest_filter=${suite}.*)
    tidemark_test_properties(${prefix}.${suite} "${labels}")
    if(ARG_COST)
      set_tests_properties(${prefix}.${suite} PROPERTIES COST ${ARG_COST})
    endif()
    if(ARG_FIXTURE)
      set_tests_properties(${prefix}.${suite} PROPERTIES FIXTURES_SETUP ${ARG_FIXTURE})
    endif()
  endforeach()
endfunction()

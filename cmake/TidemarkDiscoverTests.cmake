# Of the build and of ctest, which reads this when it starts: then all is built, and on the machine
# that it runs on. GoogleTest's own module makes each TEST a process, of which there are thousands,
# and takes one label.

function(tidemark_test_properties test timeout labels)
  # Tests run side by side, so idle OpenMP threads must not spin. Where there is no GPU, say, all
  # tests of an entry skip; ctest says so too.
  set_tests_properties(${test} PROPERTIES
    TIMEOUT ${timeout} LABELS "${labels}" ENVIRONMENT OMP_WAIT_POLICY=PASSIVE
    SKIP_RETURN_CODE 77 SKIP_REGULAR_EXPRESSION "\\[  PASSED  \\] 0 tests")
endfunction()

# Each test suite of the program, which may begin with an emulator, is a test. A program that was not built, or does not start, is a
# test without labels that fails.
function(tidemark_discover_tests program prefix timeout labels)
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
    tidemark_test_properties(${prefix}.${suite} ${timeout} "${labels}")
  endforeach()
endfunction()

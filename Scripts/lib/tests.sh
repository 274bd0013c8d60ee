# Sourced by the scripts that run tests, from the root of the package.

# Runs the tests and closes with a summary: `run_tests <name of the script> <argument of swift test> ...`.
# Answers with the status of the run.
run_tests() {
  local name=$1 log status=0 begin=$SECONDS run
  shift
  mkdir -p .build
  # Caches and cookies that sessions keep for their user: neither his own, nor those of the run before.
  rm -rf .build/test-home
  mkdir -p .build/test-home/cache .build/test-home/data
  # All tests at a time would wait for each other's processor time longer than their limits.
  export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-32}
  log=.build/${name// /-}.log
  ALAMOFIRE_TEST_HOME=$PWD/.build/test-home XDG_CACHE_HOME=$PWD/.build/test-home/cache XDG_DATA_HOME=$PWD/.build/test-home/data \
    swift test -Xswiftc -warnings-as-errors "$@" 2>&1 | tee "$log" || status=$?
  run=$(grep -aE '^[^ ]+ Test run with [0-9]+ tests?' "$log" | tail -n 1 || true)

  printf '\nScripts/%s: ' "$name"
  if [ "$status" = 0 ] && [[ -z $run || $run == *" with 0 tests "* ]]; then
    echo "FAILED: no test was run"
    status=1
  elif [ "$status" = 0 ]; then
    echo "passed in $((SECONDS - begin)) s"
  else
    echo "FAILED after $((SECONDS - begin)) s; all that was said is in $log"
    # What did not compile, which tests failed, and what ended the run before its end.
    grep -aE '^(.*[^ ]: )?error: |^[^ ]+ Test .* recorded an issue|WARNING: ThreadSanitizer|ERROR: .*Sanitizer' "$log" \
      | awk '!seen[$0]++' | head -n 40 || true
  fi
  echo "${run:-The test run did not come to its end.}"
  return "$status"
}

# Sourced by the scripts that run tests, from the root of the package.

. Scripts/lib/folders.sh

# Lists the tests of a log that began and did not end.
unfinished_tests() {
  awk '
    /^[^ ]+ Test (run|case) / { next }
    /^[^ ]+ Test .* started\.$/ { sub(/^[^ ]+ Test /, ""); sub(/ started\.$/, ""); began[$0]; next }
    /^[^ ]+ Test .* ((passed|failed) after [0-9.]+ seconds.*|(was )?(skipped|cancelled).*)$/ {
      sub(/^[^ ]+ Test /, "")
      sub(/( with [0-9]+ test cases?)? ((passed|failed) after [0-9.]+ seconds[^"]*|(was )?(skipped|cancelled)[^"]*)$/, "")
      delete began[$0]
    }
    END { for (name in began) print "  " name }' "$1" | LC_ALL=C sort
}

# Runs a command in a separate process group, and also writes its output to a log: `run_watched <log> <command> ...`.
#
# If a wait of a test ignores the cancellation by the time limit, the run would never end. So a run that prints nothing
# for TEST_SILENCE_LIMIT seconds (default: 600) after its tests began is ended, and its open tests are listed.
run_watched() {
  local log=$1 limit=${TEST_SILENCE_LIMIT:-600} group copy status=0
  shift
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  group=$!
  set +m
  tail -n +1 -f -s 0.2 --pid="$group" "$log" &
  copy=$!
  # shellcheck disable=SC2064 # the group of this run
  trap "kill -TERM -- -$group 2>/dev/null; exit 130" INT TERM HUP
  while kill -0 "$group" 2>/dev/null; do
    sleep 1
    if [ $(($(date +%s) - $(stat -c %Y "$log"))) -ge "$limit" ] && grep -aq 'Test run started\.' "$log"; then
      {
        printf '\nNo test ended or began for %s seconds, so the run is ended. These tests are open:\n' "$limit"
        unfinished_tests "$log"
      } >>"$log"
      kill -KILL -- "-$group" 2>/dev/null || true
      break
    fi
  done
  wait "$group" 2>/dev/null || status=$?
  wait "$copy" || true
  trap - INT TERM HUP
  return "$status"
}

# Runs the tests and closes with a summary: `run_tests <name of the script> <argument of swift test> ...`.
# Answers with the status of the run.
run_tests() {
  local name=$1 log status=0 begin=$SECONDS run
  shift
  mkdir -p .build
  use_own_folders
  # So that the tests use neither the caches, cookies and temporary files of the user, nor the previous run's.
  rm -rf .build/test-home
  # All tests at a time would wait for each other's processor time longer than their limits.
  export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH=${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-32}
  log=.build/${name// /-}.log
  ALAMOFIRE_TEST_HOME=$PWD/.build/test-home run_watched "$log" swift test -Xswiftc -warnings-as-errors "$@" || status=$?
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
  # Tests remove their files; what is here belongs to a test that does not.
  if [ -n "$(ls .build/test-home/tmp 2>/dev/null)" ]; then
    echo "Left in .build/test-home/tmp: $(ls .build/test-home/tmp | wc -l) entries, such as:"
    ls .build/test-home/tmp | head -n 10
  fi
  return "$status"
}

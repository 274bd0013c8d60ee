# Sourced by the scripts, from the root of the package.

# Exports folders below .build for what SwiftPM, the compiler, Foundation and programs otherwise write for their user:
# caches, cookies, settings, journals, temporary files.
use_own_folders() {
  local home=$PWD/.build/home
  export XDG_CACHE_HOME=$home/cache XDG_CONFIG_HOME=$home/config XDG_DATA_HOME=$home/data XDG_STATE_HOME=$home/state
  # All runs share it, because SwiftPM keeps the lock of a build folder there. It also leaves empty folders there.
  export TMPDIR=$home/tmp
  mkdir -p "$XDG_CACHE_HOME" "$XDG_CONFIG_HOME" "$XDG_DATA_HOME" "$XDG_STATE_HOME" "$TMPDIR"
  # Another script may remove its files at this moment.
  find "$TMPDIR" -ignore_readdir_race -mindepth 1 -maxdepth 1 -mtime +0 -exec rm -rf {} +
}

# Runs `swift build` with the given arguments. A build of more than three seconds is reported on standard error: on a
# terminal with its current step, elsewhere by a line a minute. Otherwise only the output of a failed build is shown.
swift_build() {
  local log status=0 reporter
  log=$(mktemp "$TMPDIR/build.XXXXXX")
  report_build "$log" $$ &
  reporter=$!
  swift build "$@" >"$log" 2>&1 || status=$?
  kill "$reporter" 2>/dev/null || true
  wait "$reporter" 2>/dev/null || true
  if [ -t 2 ]; then printf '\r\033[K' >&2; fi
  if [ $status != 0 ]; then grep -avE '^\[[0-9]+/[0-9]+\]' "$log" >&2 || true; fi
  rm -f "$log"
  return $status
}

# Reports a build by its log until the given process ends.
report_build() {
  local begin=$SECONDS minutes=0 seconds step
  while sleep 1 && kill -0 "$2" 2>/dev/null; do
    seconds=$((SECONDS - begin))
    if [ $seconds -lt 3 ]; then continue; fi
    step=$(grep -aoE '^\[[0-9]+/[0-9]+\]' "$1" | tail -n 1 | tr -d '[]')
    if [ -t 2 ]; then
      printf '\rBuilding: step %s, %d s\033[K' "${step:-0}" $seconds >&2
    elif [ $minutes = 0 ]; then
      echo "Building. The first build takes some minutes." >&2
      minutes=1
    elif [ $seconds -ge $((minutes * 60)) ]; then
      echo "Building: step ${step:-0} after $minutes min" >&2
      minutes=$((minutes + 1))
    fi
  done
}

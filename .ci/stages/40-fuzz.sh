# Every fuzz target for a fixed number of executions (FUZZ_EXECS).
execs=${FUZZ_EXECS:-5000}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for p in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}|{{.Dir}}{{end}}' ./...); do
  dir=${p#*|} p=${p%%|*}
  targets=$(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go | sed 's/^func //' | sort -u || true)
  [ -n "$targets" ] || continue
  GOFLAGS= go test -c -fuzz=. -o "$work/fuzz.test" "$p"
  for f in $targets; do
    echo "fuzz ${p#signalbox.example/} $f"
    (cd "$dir" && timeout 120 "$work/fuzz.test" -test.run='^$' -test.fuzz="^$f\$" -test.fuzztime="${execs}x" \
      -test.fuzzcachedir="$work/cache" -test.parallel=2 >"$work/log" 2>&1) || { tail -n 30 "$work/log"; exit 1; }
  done
done

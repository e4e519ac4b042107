# The command that makes the figures of the README files: a quick run of two of
# its sections into copies in a temporary folder.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd bench
go run ./cmd/compare -quick -only sensitivity,nat64 -out "$work"
grep -q "^| 66 octets, 6 to 4 | [0-9]" "$work/bench/README.md"
[ "$(grep -c "A quick run" "$work/bench/README.md")" = 2 ]
grep -q '^| signalbox, default | [0-9]' "$work/bench/README.md"
for plot in nat64-packet sensitivity-100khz sensitivity-500khz; do
  grep -q "(plots/$plot.svg)" "$work/bench/README.md"
  grep -q '</svg>' "$work/bench/plots/$plot.svg"
done
grep -q '^| nat64 | ICMPError/.*ns' "$work/bench/nat64/README.md"

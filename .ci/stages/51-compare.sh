# The command that makes bench/README.md: a quick run of two of its sections
# into a temporary folder.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd bench
go run ./cmd/compare -quick -only sensitivity,nat64 -out "$work"
grep -q '^| gopacket, prefix only | [0-9]' "$work/README.md"
grep -q '^| signalbox, default | [0-9]' "$work/README.md"
for plot in nat64-packet sensitivity-100khz sensitivity-500khz; do
  grep -q "(plots/$plot.svg)" "$work/README.md"
  grep -q '</svg>' "$work/plots/$plot.svg"
done

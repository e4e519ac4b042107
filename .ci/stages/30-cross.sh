# The libraries for other systems, without cgo, and their tests on 386 (native)
# and on s390x (through qemu-user): 32-bit and big-endian. Where the kernel runs
# no 386 programs (Go's crash under qemu-i386), arm takes their place. Examples
# are vetted for the systems that differ most, not linked: linking takes long and
# shows nothing more. More tests on arm are in the stages of the packages that
# need them.
export CGO_ENABLED=0
libraries=$(go list ./... | grep -v -e /examples -e /internal/)
for t in linux/arm64 linux/386 darwin/arm64 windows/amd64 freebsd/amd64 js/wasm; do
  echo "build $t"
  GOOS=${t%/*} GOARCH=${t#*/} go build $libraries
done
GOOS=windows go vet ./examples/...
GOOS=js GOARCH=wasm go vet ./examples/...
probe=$(mktemp -d)
printf 'package main\n\nfunc main() {}\n' >"$probe/main.go"
GOARCH=386 go build -o "$probe/probe" "$probe/main.go"
if "$probe/probe" 2>/dev/null; then
  GOARCH=386 go test -short $libraries
else
  echo "tests on 386 skipped: this kernel runs no 386 programs; vetted, and tested on arm,"
  echo "but for keycard (minutes of RSA; s390x runs it) and what the stages 63-lpctrie and 65-xfrm test on arm"
  GOARCH=386 go vet $libraries
  GOARCH=arm go test -short -exec qemu-arm $(echo "$libraries" | grep -v -e /keycard -e /lpctrie -e /xfrm)
fi
rm -r "$probe"
GOARCH=s390x go test -short -exec qemu-s390x $libraries

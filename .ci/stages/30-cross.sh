# The libraries and examples for other systems, without cgo, and the
# libraries' tests on 386 (native) and on s390x (through qemu-user): 32-bit
# and big-endian. Examples are vetted, not linked: linking takes long and
# shows nothing more.
export CGO_ENABLED=0
libraries=$(go list ./... | grep -v -e /examples -e /internal/)
for t in linux/arm64 linux/386 darwin/arm64 windows/amd64 freebsd/amd64 js/wasm; do
  echo "build $t"
  GOOS=${t%/*} GOARCH=${t#*/} go build $libraries
  GOOS=${t%/*} GOARCH=${t#*/} go vet ./examples/...
done
GOARCH=386 go test -short $libraries
GOARCH=s390x go test -short -exec qemu-s390x $libraries
GOARCH=arm go vet $libraries

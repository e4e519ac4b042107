# The libraries for other systems, without cgo, and their tests on 386 (native)
# and on s390x (through qemu-user): 32-bit and big-endian. Examples are vetted
# for the systems that differ most, not linked: linking takes long and shows
# nothing more. Tests on arm are in the stages of the packages that need them.
export CGO_ENABLED=0
libraries=$(go list ./... | grep -v -e /examples -e /internal/)
for t in linux/arm64 linux/386 darwin/arm64 windows/amd64 freebsd/amd64 js/wasm; do
  echo "build $t"
  GOOS=${t%/*} GOARCH=${t#*/} go build $libraries
done
GOOS=windows go vet ./examples/...
GOOS=js GOARCH=wasm go vet ./examples/...
GOARCH=386 go test -short $libraries
GOARCH=s390x go test -short -exec qemu-s390x $libraries

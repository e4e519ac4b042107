# xfrm beside the installed iproute2 (text of random messages, bytes of
# commands) and on the running kernel, in network namespaces.
export SIGNALBOX_REQUIRE=vectors,netns,iproute2
go test -run Integration -v ./xfrm/... ./examples/xfrm-monitor ./examples/xfrm-diff ./examples/bulkload | grep -v -e "^=== "
# 32 bits with 64-bit alignment, which neither 386 nor s390x has.
CGO_ENABLED=0 GOARCH=arm SIGNALBOX_REQUIRE=vectors go test -short -exec qemu-arm ./xfrm/...
# The twin without unsafe.
go test -tags purego ./xfrm

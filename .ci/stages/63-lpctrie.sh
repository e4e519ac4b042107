# lpctrie against the running kernel, in network namespaces: tries node by node,
# answers address by address. Then what takes long: every form of the full table
# on three million addresses, a million updates, a hundred thousand of them
# under the race detector; and the package without unsafe, and on 32-bit ARM.
export SIGNALBOX_REQUIRE=vectors,netns,long
go test -run 'Integration.*(Kernel|Fibdiff|FullTable|Million)' -v ./lpctrie/ ./examples/fibdiff/ | grep -v -e "^=== "
go test -race -run 'IntegrationLiveHundredThousand' ./lpctrie/
go test -short -tags purego ./lpctrie/
CGO_ENABLED=0 GOARCH=arm go test -short -exec qemu-arm ./lpctrie/

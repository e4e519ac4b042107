# lpctrie against the running kernel: tries node by node, answers address by
# address, in network namespaces.
SIGNALBOX_REQUIRE=vectors,netns go test -run Integration -v ./lpctrie/ ./examples/fibdiff/ | grep -v -e "^=== "

# radix6 against the running kernel, in network namespaces, and the long tests of live tables;
# then without unsafe and assembly.
SIGNALBOX_REQUIRE=vectors,netns,long go test -run Integration ./radix6/...
go test -short -tags purego ./radix6

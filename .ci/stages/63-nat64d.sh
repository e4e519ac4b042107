# The TUN daemon and the fast path: kernel's test run, namespaces, Debian's
# Tayga beside it, and Debian's 6.1 and 6.12 kernels.
export SIGNALBOX_REQUIRE=vectors,netns,bpf,tayga,guest
go test -run Integration ./nat64/tun ./nat64/fastpath
go test -run Integration ./examples/nat64d ./examples/clat

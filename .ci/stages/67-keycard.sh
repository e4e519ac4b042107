# Real gpg, scdaemon and pcscd against the software card, and our client over
# the same pcscd and beside gpg. vpcd's ports listen on every interface, so the
# test runs itself in namespaces of its own. The peer's adapter is checked on
# the same stack.
export SIGNALBOX_REQUIRE=vectors,pcscd
go test -timeout 200s -run Integration ./keycard
cd bench
go test -timeout 100s -run Integration ./keycard

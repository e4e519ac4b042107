# Package xfrm on packets: ESP flows, interfaces, Mobile IPv6 and the examples
# in user-mode Linux and in Debian's 6.12 under qemu. Prints each scenario.
export SIGNALBOX_REQUIRE=vectors,guest
go test -run Integration -v ./internal/xfrmguest | grep -E 'scenario:|^ *--- |init after|^(ok|FAIL|PASS)|does not say'

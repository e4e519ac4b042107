# examples/adsb beside Debian's dump1090-mutability, and as a client of the
# real rtl_tcp under a stand-in for librtlsdr.
SIGNALBOX_REQUIRE=vectors,dump1090,rtltcp go test -run Integration -v ./examples/adsb

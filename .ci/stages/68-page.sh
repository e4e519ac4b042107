# The page of examples/adsb in headless Chromium.
SIGNALBOX_REQUIRE=vectors,chromium go test -run Integration ./examples/adsb/web

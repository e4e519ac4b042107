# The runner of guest kernels itself; packages that use it have their own stages.
SIGNALBOX_REQUIRE=vectors,guest go test -run 'Integration' ./internal/guest

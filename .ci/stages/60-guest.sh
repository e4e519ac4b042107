# The runner of guest kernels itself; packages that use it have their own stages.
SIGNALBOX_REQUIRE=vectors,guest,netns go test -run 'Integration' ./internal/guest ./internal/netns

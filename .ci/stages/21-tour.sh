# The first command of the README, and the conduct of all examples on a command
# line: help, unknown flags, too many arguments.
go run ./examples/tour
SIGNALBOX_REQUIRE=vectors,examples go test -run Integration ./examples

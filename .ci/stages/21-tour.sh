# The first command of the README.
go run ./examples/tour

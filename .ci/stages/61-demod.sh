# The demodulator against dump1090-mutability on the same samples, and false
# frames in noise and among signals.
# Then the plain loops in place of assembly.
SIGNALBOX_REQUIRE=vectors,dump1090,noise,falseframes go test -run Integration ./modes/demod
go test -short -tags purego ./modes/demod

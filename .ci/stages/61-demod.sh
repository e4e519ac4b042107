# The demodulator against dump1090-mutability on the same samples, and false
# frames in noise and among signals.
SIGNALBOX_REQUIRE=vectors,dump1090,noise,falseframes go test -run Integration ./modes/demod

# The translator: all recorded exchanges through library and command line,
# nothing skipped, then the examples on small input.
SIGNALBOX_REQUIRE=vectors go test -run 'Graybox|CrossCheck|HexCases|Bugs|FuzzSeeds|Vectors' ./nat64 ./examples/translate64
go run ./examples/prefix64 neutral 64:ff9b:1::/48 | grep -qx '64:ff9b:1:fffe::/96'
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo '{"pool6":"2001:db8:64::/96","eam":[["2001:db8:c::/120","10.64.0.0/24"]]}' >"$work/config"
echo 450000221234000040113420c63364020a4000020fa00035000e779268656c6c6f21 | go run ./examples/translate64 -config "$work/config" |
  grep -qx 60000000000e113f20010db80064000000000000c633640220010db8000c000000000000000000020fa00035000e25f068656c6c6f21

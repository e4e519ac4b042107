# Card keys in OpenPGP, ssh and X.509: real gpg, over software cards in process
# and behind pcscd and vpcd; OpenSSH; openssl. vpcd's ports listen on every
# interface, so those tests run themselves in namespaces of their own. The
# example with PIV has a module of its own, for cgo.
export SIGNALBOX_REQUIRE=vectors,cardpgp
go test -timeout 200s -run Integration ./keycard/pgp ./examples/keyoffline ./examples/cardssh ./examples/cardcsr ./examples/cardsign ./examples/carddecrypt
cd examples/hardware/piv
go vet ./...
go build -o /dev/null ./...
go test ./...

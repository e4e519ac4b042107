# openpgpdns with real software, in namespaces of its own: gpg and sq find our
# keys, four name servers and four zone checkers take our records, and gpg's
# export-minimal agrees with our filter on keys made for the occasion.
SIGNALBOX_REQUIRE=vectors,gpg go test -run Integration ./openpgpdns/...

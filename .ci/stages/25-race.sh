# Packages with concurrency, under the race detector. RACE lists them.
RACE=$(sed 's/#.*//' .ci/race.txt | xargs)
[ -z "$RACE" ] || go test -race -short $RACE

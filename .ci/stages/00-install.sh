# Debian packages that the tests need (.ci/apt/*.txt, one name a line) and the
# Go modules of every nested module.
packages=$(sed 's/#.*//' .ci/apt/*.txt | sort -u | xargs)
missing=
for p in $packages; do
  dpkg-query -W -f '${db:Status-Abbrev}' "$p" 2>/dev/null | grep -q '^ii' || missing="$missing $p"
done
if [ -n "$missing" ]; then
  for try in 1 2 3; do
    apt-get update -q >/dev/null && break || sleep 5
  done
  DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >/tmp/signalbox-apt.log 2>&1 ||
    { tail -n 20 /tmp/signalbox-apt.log; exit 1; }
  echo "installed:$missing"
fi
for m in . bench tools examples/hardware/piv; do (cd "$m" && go mod download); done
.ci/kernels.sh

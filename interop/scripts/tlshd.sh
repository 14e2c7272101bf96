# Starts tlshd with the authority $1, and the certificate $2 with the key $3 for xprtsec=mtls.
set -eu
mkdir -p -m 700 /tmp/tls && cd /tmp/tls
umask 077
echo "$1" >ca.pem; echo "$2" >cert.pem; echo "$3" >key.pem
cat >conf <<END
[debug]
loglevel=1
tls=0
nl=0
[authenticate]
[authenticate.client]
x509.truststore=/tmp/tls/ca.pem
x509.certificate=/tmp/tls/cert.pem
x509.private_key=/tmp/tls/key.pem
END
[ -s /host/tlshd ] || { echo "the guest has no tlshd: build it with guest/tlsguest build" >&2; exit 1; }
pidof tlshd >/dev/null || { LD_LIBRARY_PATH=/host/lib /host/tlshd -s -c /tmp/tls/conf >log 2>&1 </dev/null & }
for i in $(seq 100); do pidof tlshd >/dev/null && exit 0; sleep 0.05; done
cat log >&2
exit 1

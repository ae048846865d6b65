#!/bin/sh
# Makes the certificates of the test API server. They are valid for a hundred years and good for nothing else.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

key() { openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$1" 2>/dev/null; }
authority() {
  key "$work/$1.key"
  openssl req -x509 -new -key "$work/$1.key" -subj "/CN=$2" -days 36500 -out "$1.crt"
}
# name, subject, extensions, start, end
leaf() {
  [ -f "$1.key" ] || key "$1.key"
  openssl req -new -key "$1.key" -subj "$2" -out "$work/$1.csr"
  printf '%s\n' "$3" >"$work/$1.ext"
  : >"$work/index.txt"
  openssl rand -hex 8 >"$work/serial"
  openssl ca -batch -notext -md sha256 -keyfile "$work/ca.key" -cert ca.crt -in "$work/$1.csr" \
    -out "${4}.crt" -startdate "$5" -enddate "$6" -extfile "$work/$1.ext" -outdir "$work" \
    -config "$work/ca.conf" 2>/dev/null
}
cat >"$work/ca.conf" <<CONF
[ca]
default_ca = test
[test]
database = $work/index.txt
serial = $work/serial
policy = any
unique_subject = no
[any]
commonName = supplied
organizationName = optional
CONF
rm -f ./*.crt ./*.key
authority ca 'Junction test authority'
authority otherCa 'Another test authority'
names='subjectAltName=DNS:localhost,DNS:kubernetes.default.svc,IP:127.0.0.1,IP:::1
extendedKeyUsage=serverAuth'
leaf server /CN=kube-apiserver "$names" server 20200101000000Z 21200101000000Z
leaf server /CN=kube-apiserver "$names" expiredServer 20200101000000Z 20200102000000Z
leaf client '/O=system:masters/CN=junction' extendedKeyUsage=clientAuth client 20200101000000Z 21200101000000Z
leaf client '/O=system:masters/CN=junction' extendedKeyUsage=clientAuth expiredClient 20200101000000Z 20200102000000Z

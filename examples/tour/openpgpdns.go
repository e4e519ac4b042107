package main

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"signalbox.example/openpgpdns"
)

// tourCert is a certificate of the invented bob@example.org and
// bob@example.net, made for this project: ed25519 and cv25519.
const tourCert = `-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEaVW5ABYJKwYBBAHaRw8BAQdAc7FtV+r6ljB25FYjXQOcTZ6Y+2gLGMXaobvp
APKz66O0GkJvYiBUb3VyIDxib2JAZXhhbXBsZS5vcmc+iJAEExYIADgWIQQRhDes
pRkYSMfQe2hzMwxs/i6QaAUCaVW5AAIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIX
gAAKCRBzMwxs/i6QaD4rAQDj236wFSjFWwqs99anHHzANLmPqafP+i7LcbHX1B67
twEAjIWbpGvAsiZSY8RhLHUpYg4Rc1DOj6aTZI0limcs1A60HUJvYiBhdCB3b3Jr
IDxib2JAZXhhbXBsZS5uZXQ+iJAEExYIADgWIQQRhDespRkYSMfQe2hzMwxs/i6Q
aAUCaVW5AAIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIXgAAKCRBzMwxs/i6QaBvM
AQD7jX5Ia9QA5+3/+R3+3fbar4UWMWN/bXjY3MnWioazTgD/VbV+ZqEZAoT4RQC4
zX37LcRzDZA/QRM8EEDO1ulq5Qm4OARpVbkAEgorBgEEAZdVAQUBAQdAM8uNfJpZ
Yx7XTt3qt+T/BC8kUnDDFIk5XWUtE3P+uVcDAQgHiHgEGBYIACAWIQQRhDespRkY
SMfQe2hzMwxs/i6QaAUCaVW5AAIbDAAKCRBzMwxs/i6QaGi8AP9+ZPOFEukSCI40
CKpqOpZE9mgXgdzIr8JHVpaUHPnYnwEA6SHghOPim19dQJzuEjwea6Vv6Q5GW7D+
xnc7qQWQXQI=
=NGAk
-----END PGP PUBLIC KEY BLOCK-----
`

func openpgpdnsSection(w io.Writer) error {
	fingerprint, err := hex.DecodeString("646B0F089DD5022CF5BA29F9F4DFA1D665C135D6")
	if err != nil {
		return err
	}
	hugh, err := openpgpdns.ParseAddress("hugh@example.com")
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "CERT IPGP (PKA) records of the fingerprint", strings.ToUpper(hex.EncodeToString(fingerprint)))
	for _, url := range []string{"", "https://slxh.eu/keys/pgp/65C135D6"} {
		r, err := openpgpdns.CERTIPGP(hugh, fingerprint, url)
		if err != nil {
			return err
		}
		w.Write(r.AppendText(nil, openpgpdns.Portable, -1))
		if url == "" {
			w.Write(r.AppendText(nil, openpgpdns.GPG, 0))
		}
	}

	ring := strings.NewReader(tourCert)
	for cert, err := range openpgpdns.ReadCerts(ring) {
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "\na certificate of %d octets, %X\n", len(cert.Bytes()), cert.Fingerprint())
		if errs := cert.Verify(); len(errs) > 0 {
			return errs[0]
		}
		for a := range cert.Addresses() {
			r, err := openpgpdns.OPENPGPKEY(a, openpgpdns.Minimal(), cert)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "  %s, published with that user ID alone, %d octets\n", a, len(r.Data))
			fmt.Fprintf(w, "    WKD  %s\n", a.WKDURL(openpgpdns.Advanced))
			first, _, _ := bytes.Cut(r.AppendText(nil, openpgpdns.Portable, 0), []byte("("))
			fmt.Fprintf(w, "    DANE %s( ...\n", first)
			back, err := openpgpdns.ParseRecord(string(r.AppendText(nil, openpgpdns.Generic, 64)))
			if err != nil || !bytes.Equal(back.Data, r.Data) {
				return fmt.Errorf("the record does not survive its own text: %v", err)
			}
		}
	}
	return nil
}

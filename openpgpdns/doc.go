// Package openpgpdns publishes OpenPGP keys in Web Key Directories and in DNS.
package openpgpdns

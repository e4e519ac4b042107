// Package softcard is an OpenPGP smart card in software, for tests: of
// programs that use cards, of this module's own client, and of gpg, which
// accepts it as a card when it is served over vpcd's protocol.
package softcard

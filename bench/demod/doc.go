// Package demod compares modes/demod with dump1090-mutability on the same
// samples: processor time side by side, and what each finds.
package demod

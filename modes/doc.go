// Package modes decodes Mode S and ADS-B replies at 1090 MHz.
package modes

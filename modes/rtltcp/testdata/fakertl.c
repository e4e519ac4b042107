/*
 * A stand-in for librtlsdr, loaded with LD_PRELOAD: one R820T tuner whose
 * samples come from the file FAKERTL_IQ, again and again, at the rate that was
 * set. Calls are logged to the file FAKERTL_LOG, one a line. It lets the real
 * rtl_tcp run without a radio.
 *
 * cc -shared -fPIC -O1 -o fakertl.so fakertl.c
 */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct rtlsdr_dev rtlsdr_dev_t;
typedef void (*rtlsdr_read_async_cb_t)(unsigned char *buf, uint32_t len, void *ctx);

static struct {
	uint32_t freq, rate;
	int gain, ppm, manual;
	volatile int stop;
} dev = {.rate = 2048000, .freq = 100000000};

static const int gains[29] = {0,   9,   14,  27,  37,  77,  87,  125, 144, 157, 166, 197, 207, 229, 254,
                              280, 297, 328, 338, 364, 372, 386, 402, 421, 434, 439, 445, 480, 496};

static void note(const char *format, ...) {
	const char *path = getenv("FAKERTL_LOG");
	FILE *f = path ? fopen(path, "a") : NULL;
	va_list ap;
	if (!f)
		return;
	va_start(ap, format);
	vfprintf(f, format, ap);
	va_end(ap);
	fputc('\n', f);
	fclose(f);
}

uint32_t rtlsdr_get_device_count(void) { return 1; }
const char *rtlsdr_get_device_name(uint32_t i) { return "stand-in RTL2832U"; }
int rtlsdr_get_device_usb_strings(uint32_t i, char *m, char *p, char *s) {
	if (m) strcpy(m, "stand-in");
	if (p) strcpy(p, "RTL2832U");
	if (s) strcpy(s, "00000001");
	return 0;
}
int rtlsdr_get_usb_strings(rtlsdr_dev_t *d, char *m, char *p, char *s) { return rtlsdr_get_device_usb_strings(0, m, p, s); }
int rtlsdr_get_index_by_serial(const char *s) { return 0; }
int rtlsdr_open(rtlsdr_dev_t **d, uint32_t i) { *d = (rtlsdr_dev_t *)&dev; return 0; }
int rtlsdr_close(rtlsdr_dev_t *d) { return 0; }
int rtlsdr_set_xtal_freq(rtlsdr_dev_t *d, uint32_t r, uint32_t t) { return 0; }
int rtlsdr_get_xtal_freq(rtlsdr_dev_t *d, uint32_t *r, uint32_t *t) { *r = *t = 28800000; return 0; }
int rtlsdr_set_center_freq(rtlsdr_dev_t *d, uint32_t f) { dev.freq = f; note("freq %u", f); return 0; }
uint32_t rtlsdr_get_center_freq(rtlsdr_dev_t *d) { return dev.freq; }
int rtlsdr_set_freq_correction(rtlsdr_dev_t *d, int p) { dev.ppm = p; note("ppm %d", p); return 0; }
int rtlsdr_get_freq_correction(rtlsdr_dev_t *d) { return dev.ppm; }
int rtlsdr_get_tuner_type(rtlsdr_dev_t *d) { return 5; /* R820T */ }
int rtlsdr_get_tuner_gains(rtlsdr_dev_t *d, int *g) {
	if (g) memcpy(g, gains, sizeof gains);
	return sizeof gains / sizeof *gains;
}
int rtlsdr_set_tuner_gain(rtlsdr_dev_t *d, int g) { dev.gain = g; note("gain %d", g); return 0; }
int rtlsdr_get_tuner_gain(rtlsdr_dev_t *d) { return dev.gain; }
int rtlsdr_set_tuner_bandwidth(rtlsdr_dev_t *d, uint32_t b) { return 0; }
int rtlsdr_set_tuner_if_gain(rtlsdr_dev_t *d, int s, int g) { return 0; }
int rtlsdr_set_tuner_gain_mode(rtlsdr_dev_t *d, int m) { dev.manual = m; note("mode %d", m); return 0; }
int rtlsdr_set_sample_rate(rtlsdr_dev_t *d, uint32_t r) { dev.rate = r; note("rate %u", r); return 0; }
uint32_t rtlsdr_get_sample_rate(rtlsdr_dev_t *d) { return dev.rate; }
int rtlsdr_set_testmode(rtlsdr_dev_t *d, int on) { return 0; }
int rtlsdr_set_agc_mode(rtlsdr_dev_t *d, int on) { note("agc %d", on); return 0; }
int rtlsdr_set_direct_sampling(rtlsdr_dev_t *d, int on) { return 0; }
int rtlsdr_get_direct_sampling(rtlsdr_dev_t *d) { return 0; }
int rtlsdr_set_offset_tuning(rtlsdr_dev_t *d, int on) { return 0; }
int rtlsdr_get_offset_tuning(rtlsdr_dev_t *d) { return 0; }
int rtlsdr_reset_buffer(rtlsdr_dev_t *d) { return 0; }
int rtlsdr_set_bias_tee(rtlsdr_dev_t *d, int on) { note("biastee %d", on); return 0; }
int rtlsdr_set_bias_tee_gpio(rtlsdr_dev_t *d, int gpio, int on) { return 0; }

static FILE *iq;

int rtlsdr_read_sync(rtlsdr_dev_t *d, void *buf, int len, int *n) {
	const char *path = getenv("FAKERTL_IQ");
	int got = 0;
	if (!iq && (!path || !(iq = fopen(path, "rb"))))
		return -1;
	while (got < len) {
		size_t r = fread((char *)buf + got, 1, len - got, iq);
		if (r == 0) {
			if (fseek(iq, 0, SEEK_SET) || fgetc(iq) == EOF)
				return -1;
			fseek(iq, 0, SEEK_SET);
		}
		got += r;
	}
	*n = got;
	return 0;
}

int rtlsdr_cancel_async(rtlsdr_dev_t *d) { dev.stop = 1; return 0; }

int rtlsdr_read_async(rtlsdr_dev_t *d, rtlsdr_read_async_cb_t cb, void *ctx, uint32_t count, uint32_t len) {
	unsigned char *buf;
	struct timespec next;
	int n;
	if (len == 0)
		len = 16 * 32 * 512;
	buf = malloc(len);
	if (!buf)
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &next);
	dev.stop = 0;
	while (!dev.stop) {
		if (rtlsdr_read_sync(d, buf, len, &n))
			break;
		cb(buf, n, ctx);
		/* len/2 samples take so long at the present rate */
		next.tv_nsec += (long)(len / 2 * 1e9 / dev.rate);
		while (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	free(buf);
	return 0;
}
int rtlsdr_wait_async(rtlsdr_dev_t *d, rtlsdr_read_async_cb_t cb, void *ctx) { return rtlsdr_read_async(d, cb, ctx, 0, 0); }

package openpgpdns

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"strings"
)

// Handler serves a Web Key Directory from the tree that [WKD] writes, both
// layouts. fsys is the web root, such as os.DirFS(Root). It answers GET and
// HEAD of key files, policy and submission-address, and OPTIONS, and nothing
// else: no listing, no other file, however the path is spelled. The l parameter
// is not needed. Keys come as application/octet-stream; every answer allows
// browsers of all origins. Conditional and range requests work. Files that
// cannot seek are read whole, up to 64 MiB.
func Handler(fsys fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("X-Content-Type-Options", "nosniff")
		switch r.Method {
		case http.MethodGet, http.MethodHead:
		case http.MethodOptions:
			h.Set("Allow", "GET, HEAD, OPTIONS")
			h.Set("Access-Control-Allow-Methods", "GET, HEAD")
			w.WriteHeader(http.StatusNoContent)
			return
		default:
			h.Set("Allow", "GET, HEAD, OPTIONS")
			http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
			return
		}
		name, contentType, ok := wkdFile(r.URL.Path)
		if !ok || !serveFile(w, r, fsys, name, contentType) {
			http.Error(w, "not found", http.StatusNotFound)
		}
	})
}

// wkdFile maps the path of a request to the file below the web root.
func wkdFile(path string) (name, contentType string, ok bool) {
	rest, ok := strings.CutPrefix(path, "/"+wellKnown+"/")
	if !ok {
		return "", "", false
	}
	parts := strings.Split(rest, "/")
	file := rest
	if len(parts) > 1 && parts[0] != "hu" {
		// Advanced: the domain comes first. Its case does not matter.
		d, err := DomainToASCII(parts[0])
		if err != nil || strings.HasSuffix(parts[0], ".") {
			return "", "", false
		}
		_, file, _ = strings.Cut(rest, "/")
		rest = d + "/" + file
	}
	hash, key := strings.CutPrefix(file, "hu/")
	switch {
	case key && isWKDHash(hash):
		contentType = "application/octet-stream"
	case file == "policy", file == "submission-address":
		contentType = "text/plain; charset=utf-8"
	default:
		return "", "", false
	}
	return wellKnown + "/" + rest, contentType, true
}

// serveFile reports whether there was a regular file of that name.
func serveFile(w http.ResponseWriter, r *http.Request, fsys fs.FS, name, contentType string) bool {
	f, err := fsys.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	content, ok := f.(io.ReadSeeker)
	if !ok {
		b, err := io.ReadAll(io.LimitReader(f, 64<<20))
		if err != nil {
			return false
		}
		content = bytes.NewReader(b)
	}
	w.Header().Set("Content-Type", contentType)
	http.ServeContent(w, r, "", info.ModTime(), content)
	return true
}

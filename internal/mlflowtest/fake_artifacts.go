package mlflowtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
)

// folder returns the folder of the run's artifacts.
func (r *run) folder() string { return r.experiment.id + "/" + r.id + "/artifacts" }

func newArtifact(name string, data []byte) Artifact {
	a := Artifact{Path: name, Size: int64(len(data))}
	if path.Ext(name) == ".json" && len(data) <= 1<<20 {
		sum := sha256.Sum256(data)
		a.SHA256 = hex.EncodeToString(sum[:])
	}
	return a
}

// uploadArtifact handles the call that uploads small files to any store.
func (f *Fake) uploadArtifact(w http.ResponseWriter, r *http.Request, body []byte) {
	if r.Method != http.MethodPost {
		html(w, http.StatusMethodNotAllowed, "Method Not Allowed")
		return
	}
	f.mu.Lock()
	err := f.upload(r.URL.Query().Get("run_uuid"), r.URL.Query().Get("path"), body)
	f.mu.Unlock()
	if err != nil {
		err.write(w)
		return
	}
	w.Header().Set("Content-Type", "application/json") // a response without a body
}

func (f *Fake) upload(id, name string, body []byte) *apiError {
	switch {
	case id == "":
		return invalid("Request must specify run_uuid.")
	case name == "":
		return invalid("Request must specify path.")
	case len(body) > maxUploadSize:
		return invalid("Artifact size is too large. Max size is 10MB.")
	case len(body) == 0:
		return invalid("Request must specify data.")
	}
	if err := safePath(name); err != nil {
		return err
	}
	r, err := f.run(id)
	if err != nil {
		return err
	}
	return f.store(r.folder()+"/"+name, body)
}

// store stores a file, unless name is already a folder, or a part of its path is already a file.
func (f *Fake) store(name string, body []byte) *apiError {
	name = path.Clean(name)
	if err := collides(f.files, name); err != nil {
		return err
	}
	f.files[name] = body
	return nil
}

// proxied handles requests to the server's artifact store.
func (f *Fake) proxied(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()

	err := safePath(name)
	switch {
	case f.NoServeArtifacts:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "Endpoint disabled due to the mlflow server running with `--no-serve-artifacts`.")
	case err != nil:
		err.write(w)
	case r.Method == http.MethodGet && name == "":
		if err := safePath(r.URL.Query().Get("path")); err != nil {
			err.write(w)
			return
		}
		writeJSON(w, http.StatusOK, f.list(r.URL.Query().Get("path"), ""))
	case r.Method == http.MethodGet:
		f.download(w, name)
	case r.Method == http.MethodPut && name != "":
		if err := f.store(name, body); err != nil {
			html(w, err.status, "Internal Server Error")
			return
		}
		writeJSON(w, http.StatusOK, struct{}{})
	default:
		html(w, http.StatusMethodNotAllowed, "Method Not Allowed")
	}
}

func (f *Fake) download(w http.ResponseWriter, name string) {
	data, ok := f.files[name]
	if !ok {
		absent("No such artifact: '%s'", name).write(w)
		return
	}
	w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
	_, _ = w.Write(data) // fails if the client has disconnected
}

type artifactQuery struct {
	RunID string `json:"run_id" need:"yes"`
	Path  string `json:"path"`
	Token string `json:"page_token"`
}

func (f *Fake) listArtifacts(in *artifactQuery) (any, *apiError) {
	if err := safePath(in.Path); err != nil {
		return nil, err
	}
	r, err := f.run(in.RunID)
	if err != nil {
		return nil, err
	}
	answer := f.list(path.Join(r.folder(), in.Path), in.Path)
	answer["root_uri"] = r.root
	return answer, nil
}

// list returns the entries of folder. The names in the result begin with prefix.
func (f *Fake) list(folder, prefix string) map[string]any {
	entries := map[string]map[string]any{}
	for name, data := range f.files {
		rest, ok := strings.CutPrefix(name, strings.TrimPrefix(path.Clean("/"+folder)+"/", "/"))
		if !ok {
			continue
		}
		first, _, isDir := strings.Cut(rest, "/")
		entry := map[string]any{"path": path.Join(prefix, first), "is_dir": isDir}
		if len(data) > 0 && !isDir { // servers omit a size of 0
			entry["file_size"] = f.int64(int64(len(data)))
		}
		entries[first] = entry
	}

	answer := map[string]any{}
	var files []any
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		files = append(files, entries[name])
	}

	if files != nil {
		answer["files"] = files
	}

	return answer
}

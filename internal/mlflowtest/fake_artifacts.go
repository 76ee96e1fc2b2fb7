package mlflowtest

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"path"
)

// folder returns the folder of the run's artifacts.
func (r *run) folder() string { return r.experiment.id + "/" + r.id + "/artifacts" }

// root returns the location of the run's artifacts.
func (r *run) root() string { return r.experiment.location() + "/" + r.id + "/artifacts" }

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
	w.Header().Set("Content-Type", "application/json") // the response has no body
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

// proxied handles uploads to the server's artifact store.
func (f *Fake) proxied(w http.ResponseWriter, r *http.Request, name string, body []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := safePath(name); err != nil {
		err.write(w)
		return
	}
	if r.Method != http.MethodPut || name == "" {
		html(w, http.StatusMethodNotAllowed, "Method Not Allowed")
		return
	}
	if err := f.store(name, body); err != nil {
		html(w, err.status, "Internal Server Error")
		return
	}
	writeJSON(w, http.StatusOK, struct{}{})
}

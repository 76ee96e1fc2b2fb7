//go:build e2e

package kubernetes

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/perfagent/perfagent/internal/clitest"
	"github.com/perfagent/perfagent/internal/testenv"
)

// An image is a container image.
type image struct {
	name       string            // including the tag
	files      map[string]string // programs on this machine, by path in the image; "-> TARGET" is a link
	entrypoint []string
}

// images returns the images of deploy/kubernetes, with the names in kustomization.yaml, and the image pause. They must
// be loaded into the nodes, because there is no registry.
func images(t *testing.T) []image {
	t.Helper()
	busybox := testenv.NeedsTool(t, "busybox", "apt-get install busybox-static (make e2e does it as root)")
	names := imageNames(t)
	return []image{
		{names["perfagent"], map[string]string{"perfagent": clitest.Binary(t)}, []string{"/perfagent"}},
		{names["job"], map[string]string{
			"bin/busybox": busybox, "bin/sh": "-> busybox", "bin/sleep": "-> busybox", "bin/dd": "-> busybox",
		}, nil},
		{pause, map[string]string{"busybox": busybox}, []string{"/busybox", "sleep", "1000000"}},
	}
}

// pause is the image of the container that keeps a Pod's network alive.
const pause = "registry.example.com/pause:v1"

// podman accepts the images, and checks the digests of their layers.
func TestImages_LoadIntoPodman(t *testing.T) {
	podman := testenv.NeedsTool(t, "podman", "apt-get install podman (make e2e does it as root)")
	testenv.NeedsRoot(t, "for podman's store")
	dir := t.TempDir()
	store := []string{"--root=" + dir + "/graph", "--runroot=" + dir + "/run", "--storage-driver=vfs"}
	for _, i := range images(t) {
		path := clitest.Write(t, dir+"/image.tar", i.archive(t), 0o600)
		clitest.RunCommand(t, clitest.Command(t, podman, append(store, "load", "-q", "-i", path)...)).Want(t, 0)
		o := clitest.RunCommand(t, clitest.Command(t, podman, append(store, "image", "inspect", "-f", "{{.Config.Entrypoint}} {{.RepoTags}}", i.name)...))
		if want := fmt.Sprintf("%v [%s]\n", i.entrypoint, i.name); o.Out != want {
			t.Errorf("podman printed %q, stderr %s; want %q", o.Out, o.Err, want)
		}
	}
}

// archive returns the path of an archive of the image, in the format of "docker save".
func (i image) archive(t *testing.T) string {
	t.Helper()
	layer := make(map[string]string)
	for name, path := range i.files {
		layer[name] = path
		if !strings.HasPrefix(path, "-> ") {
			layer[name] = clitest.Read(t, path)
		}
	}
	files := map[string]string{"layer.tar": tarOf(t, layer)}
	files["config.json"] = asJSON(t, map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": i.entrypoint, "Env": []string{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(files["layer.tar"])))}},
	})
	files["manifest.json"] = asJSON(t, []any{
		map[string]any{"Config": "config.json", "RepoTags": []string{i.name}, "Layers": []string{"layer.tar"}},
	})

	return tarOf(t, files)
}

// tarOf returns the path of a tar archive of files, with permission for all users to run them. A value that begins with
// an arrow is a link.
func tarOf(t *testing.T, files map[string]string) string {
	t.Helper()
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for name, text := range files {
		header := tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}
		if target, ok := strings.CutPrefix(text, "-> "); ok {
			header, text = tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}, ""
		}
		err := w.WriteHeader(&header)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	return buf.String()
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}

	return string(data)
}

// load puts the images into the store of a node.
func (c *cluster) load(node int, images []image) {
	c.t.Helper()
	for _, i := range images {
		path := c.path("image.tar")
		clitest.Write(c.t, path, i.archive(c.t), 0o600)
		host := c.nodes[node]
		clitest.RunCommand(c.t, host.Command(c.t, c.dir, "ctr", "--address", c.socket(node), "--namespace", "k8s.io", "images", "import", path)).Want(c.t, 0)
		if err := os.Remove(path); err != nil {
			c.t.Fatal(err)
		}
	}
}
